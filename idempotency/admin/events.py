"""The audit: who did what to which key, and what was alarming. Nobody edits it, the database sees to that."""

import uuid
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from idempotency.admin import audit
from idempotency.admin.acting import back
from idempotency.admin.alarms import handling, unhandled
from idempotency.admin.base import ConsoleAdmin
from idempotency.admin.cells import since, two_lines
from idempotency.admin.forms import ActionForm
from idempotency.admin.moments import Moment, day_and_time
from idempotency.admin.occurrences import occurrence
from idempotency.conf import conf
from idempotency.http.header import mask
from idempotency.ledger import moment
from idempotency.models import Event


class AlarmFilter(admin.SimpleListFilter):
    """All events, or those that were alarming."""

    title = "kind"
    parameter_name = "alarming"

    def lookups(
        self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]"
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        return [("open", "Alarming, not handled"), ("yes", "Alarming")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the choice."""
        if self.value() == "open":
            return queryset.filter(pk__in=unhandled().order_by("-at").values("pk")[:_MOST])
        return queryset.filter(alarming=True) if self.value() == "yes" else queryset


_MOST = 1_000
"""Alarms that a list of those shows which nobody has seen to: more of them are one trouble, not many."""


class EventAdmin(ConsoleAdmin):
    """The list of events, the latest first."""

    list_display = ("what", "seen", "actor", "reason_shown", "of_key")
    list_display_links = None
    list_filter = (AlarmFilter,)
    search_fields = ("key_id",)
    search_help_text = "Exact: a key's operation_ref, also of a key that has been purged."

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the order of the index that the choice reads."""
        return ("-at",) if request.GET.get("alarming") else ("-pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the events of one key."""
        if not search_term.strip():
            return queryset, False
        try:
            return queryset.filter(key_id=uuid.UUID(search_term.strip())), False
        except ValueError:
            return queryset.none(), False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list under its own name."""
        extra = {"title": "Events", "tools": [self.to_overview()], **(extra_context or {})}
        return super().changelist_view(request, extra)

    # -- one event ---------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Return the pages of the console before Django's own."""
        pages = {"values": self.reveal_view, "handle": self.handle_view}
        return [
            *(
                path(
                    f"<int:event_id>/{name}/",
                    transaction.non_atomic_requests(self.admin_site.admin_view(view)),
                    name=f"idempotency_event_{name}",
                )
                for name, view in pages.items()
            ),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one event; there is nothing to change about it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied("An event is never changed.")
        return self._shown(request, self._event(object_id))

    def reveal_view(self, request: HttpRequest, event_id: int) -> HttpResponse:
        """Show one event with its values; who looked is on record before anything is shown."""
        if not (self.has_view_permission(request) and request.user.has_perm(_REVEAL)):
            raise PermissionDenied
        event = self._event(event_id)
        if request.method != "POST":
            return back(self._address("change", event_id))
        actor, detail = request.user.get_username(), {"event": event.pk}
        audit.record(kind="staff-reveal", actor=actor, key_id=event.key_id, detail=detail)
        return self._shown(request, event, revealed=True)

    def handle_view(self, request: HttpRequest, event_id: int) -> HttpResponse:
        """Mark an alarm as handled, with a reason, once."""
        if not (self.has_view_permission(request) and request.user.has_perm(HANDLE)):
            raise PermissionDenied
        event = self._event(event_id)
        form = ActionForm(request.POST) if request.method == "POST" else ActionForm()
        if request.method == "POST" and form.is_valid():
            done = audit.handle(
                form=form.cleaned_data["form"],
                event_id=event.pk,
                actor=request.user.get_username(),
                reason=form.cleaned_data["reason"],
            )
            if done:
                messages.success(request, "The alarm is marked as handled.")
            else:
                messages.warning(request, _first(event))
            return back(self._address("change", event_id))
        context = self._context(request, event, title="Mark as handled")
        context |= {"form": form, "refusal": "" if _is_open(event) else _first(event)}
        return TemplateResponse(request, "admin/idempotency/event/handle.html", context)

    def _shown(self, request: HttpRequest, event: Event, *, revealed: bool = False) -> HttpResponse:
        context = self._context(request, event, title="Event", revealed=revealed)
        context["may_reveal"] = request.user.has_perm(_REVEAL)
        context["may_handle"] = request.user.has_perm(HANDLE) and _is_open(event)
        # Money of which nothing here knows came by a message, and that has the other side's id, too.
        context["named"] = mask(str(event.detail.get("gateway_reference", "")))
        context["handling"] = handling(event) if event.alarming else None
        return TemplateResponse(request, "admin/idempotency/event/detail.html", context)

    def _context(
        self, request: HttpRequest, event: Event, *, title: str, revealed: bool = False
    ) -> dict[str, Any]:
        request.current_app = self.admin_site.name
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "event": event,
            "said": occurrence(event, revealed=revealed),
            "reason": mask(event.reason),
            "revealed": revealed,
            "at": Moment.of(event.at, now=moment.counted()),
        }

    def _event(self, event_id: object) -> Event:
        try:
            found = Event.objects.using(conf.DATABASE).filter(pk=int(str(event_id))).first()
        except (ValueError, OverflowError):
            found = None
        if found is None:
            raise Http404("There is no such event.")
        return found

    def _address(self, page: str, *args: object) -> str:
        name = f"admin:idempotency_event_{page}"
        return reverse(name, args=args, current_app=self.admin_site.name)

    # -- columns -----------------------------------------------------------------------------------

    @admin.display(description="What")
    def what(self, event: Event) -> SafeString:
        """Show the kind of event, and its facts; it leads to the event."""
        said = occurrence(event, revealed=False)
        facts = ", ".join(f"{name}: {value}" for name, value in said.facts.items())
        cell = two_lines(said.title, facts)
        return format_html('<a href="{}">{}</a>', self._address("change", event.pk), cell)

    @admin.display(description="When")
    def seen(self, event: Event) -> SafeString:
        """Show when it was."""
        return since(event.at)

    @admin.display(description="Reason")
    def reason_shown(self, event: Event) -> str:
        """Show why."""
        return mask(event.reason)

    @admin.display(description="Key")
    def of_key(self, event: Event) -> SafeString | str:
        """Lead to the key."""
        if event.key_id is None:
            return "–"
        address = reverse(
            "admin:idempotency_key_change", args=(event.key_id,), current_app=self.admin_site.name
        )
        return format_html('<a href="{}">{}…</a>', address, str(event.key_id)[:13])


HANDLE = "idempotency.handle_event"
_REVEAL = "idempotency.view_payload"


def _is_open(event: Event) -> bool:
    return event.alarming and handling(event) is None


def _first(event: Event) -> str:
    """Return who has seen to it already, which is what the second of two people wants to know."""
    by = handling(event)
    if by is None:
        return "It is no alarm: there is nothing to handle."
    at = day_and_time(by.at, now=moment.counted(), seconds=True)
    return f"{by.actor} marked it as handled at {at}: {mask(by.reason)}"
