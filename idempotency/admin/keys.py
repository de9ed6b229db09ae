"""Keys: find one, read its story, act on it."""

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache

from idempotency.admin import audit, search
from idempotency.admin.acting import Offer, allowed, applicable, back, perform, require
from idempotency.admin.actions import ACTIONS
from idempotency.admin.advice import of_double
from idempotency.admin.alarms import unhandled_of
from idempotency.admin.base import ConsoleAdmin, query_of, said_of
from idempotency.admin.bulk import BulkPages
from idempotency.admin.cells import badge, headline, since, two_lines
from idempotency.admin.detail import BODIES, Look, glance, look, page
from idempotency.admin.events import HANDLE
from idempotency.admin.export import as_csv
from idempotency.admin.filters import AgeFilter, KeyState
from idempotency.admin.known import note
from idempotency.admin.occurrences import title_of
from idempotency.admin.related import doubles, doubles_of, related
from idempotency.admin.situations import Situation
from idempotency.http.header import mask
from idempotency.models import Key

_BODIES = (*BODIES, "work__input", "work__result")


class KeyAdmin(BulkPages, ConsoleAdmin):
    """The list of keys, and the page of each."""

    list_display = ("state_shown", "about", "seen", "names")
    list_display_links = ("about",)
    list_filter = (KeyState, AgeFilter)
    # What is searched is up to `search.keys_for`; Django shows the box if there is a field.
    search_fields = ("key",)
    search_help_text = search.HELP

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave the bodies where they are."""
        return super().get_queryset(request).select_related("work").defer(*_BODIES)

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the order of the view, which is that of the index it reads."""
        return KeyState.order(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the keys of which the text is an exact name."""
        if not search_term.strip():
            return queryset, False
        return queryset.filter(pk__in=search.keys_for(search_term)), False

    # -- columns -----------------------------------------------------------------------------------

    @admin.display(description="What")
    def about(self, key: Key) -> SafeString:
        """Show the line to read aloud."""
        return headline(glance(key))

    @admin.display(description="State")
    def state_shown(self, key: Key) -> SafeString:
        """Show the situation in two words."""
        return badge(glance(key))

    @admin.display(description="First seen")
    def seen(self, key: Key) -> SafeString:
        """Show when the key was claimed first."""
        return since(key.created_at)

    @admin.display(description="Reference and key")
    def names(self, key: Key) -> SafeString:
        """Show what the caller calls it; a card number that somebody put there is masked."""
        text = mask(key.key)
        return two_lines(mask(key.reference) or "–", text if len(text) <= 24 else f"{text[:23]}…")

    # -- pages -------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Return the pages of the console before Django's own."""
        return [
            path("export/", self._page(self.export_view), name="idempotency_key_export"),
            path("many/<slug:name>/", self._page(self.bulk_view), name="idempotency_key_bulk"),
            path(
                "<uuid:key_id>/values/", self._page(self.reveal_view), name="idempotency_key_reveal"
            ),
            path(
                "<uuid:key_id>/act/<slug:name>/",
                self._page(self.act_view),
                name="idempotency_key_act",
            ),
            *super().get_urls(),
        ]

    def _page(self, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        """Guard a page, and keep the host's transaction off it: actions open and end their own."""

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not self.has_view_permission(request):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        wrapped: Callable[..., HttpResponseBase] = transaction.non_atomic_requests(
            self.admin_site.admin_view(never_cache(guarded))
        )
        return wrapped

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, under a name that says what it lists, with what may be done to all of it."""
        query = query_of(request)
        tools = [self.to_overview()]
        if KeyState.chosen(request) in ("open", "unknown", "person") and allowed(
            request, ACTIONS["ask"]
        ):
            tools.append(("Ask about these", self._address("bulk", "ask", query=query)))
        if request.user.has_perm("idempotency.export_keys"):
            tools.append(("Export as CSV", self._address("export", query=query)))
        extra = {"title": "Keys", "tools": tools, **(extra_context or {})}
        return self._explained(request, super().changelist_view(request, extra))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one key; there is nothing to change here."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied("A key is changed by an action.")
        key = self._key(request, object_id)
        return self._missing(request) if key is None else self._detail(request, key)

    def reveal_view(self, request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
        """Show one key with its values; who looked is on record before anything is shown."""
        if not request.user.has_perm("idempotency.view_payload"):
            raise PermissionDenied
        key = self._key(request, str(key_id))
        if key is None:
            return self._missing(request)
        if request.method != "POST":
            return back(self._address("change", key_id))
        audit.record(kind="staff-reveal", actor=request.user.get_username(), key_id=key.pk)
        return self._detail(request, key, revealed=True)

    def act_view(self, request: HttpRequest, key_id: uuid.UUID, name: str) -> HttpResponse:
        """Preview an action on one key and, on POST, do it."""
        action = require(request, name)
        key = self._key(request, str(key_id))
        if key is None:
            return self._missing(request)
        seen = look(key)
        form = action.form(request.POST) if request.method == "POST" else action.form()
        if request.method == "POST" and form.is_valid():
            perform(request, action, key, form)
            return back(self._address("change", key_id))
        context = self._context(request, seen, title=action.label)
        context |= {"action": action, "form": form, "refusal": action.refusal(seen)}
        return TemplateResponse(request, "admin/idempotency/key/act.html", context)

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Return the list as a file; that it was taken is on record."""
        if not request.user.has_perm("idempotency.export_keys"):
            raise PermissionDenied
        keys = self.keys_of(request)
        audit.record(
            kind="staff-export",
            actor=request.user.get_username(),
            detail={"list": said_of(request)},
        )
        return as_csv(keys)

    def keys_of(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the keys that the list with this address shows."""
        return self.rows_of(request)

    def _explained(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Add what the host knows of the rows, and say first where one thing was done twice."""
        if not isinstance(response, TemplateResponse) or "cl" not in (response.context_data or {}):
            return response
        rows = list((response.context_data or {})["cl"].result_list)
        note(rows)
        if request.GET.get("q", "").strip():
            for double in doubles(map(glance, rows)):
                messages.warning(request, double.text)
        return response

    # -- parts -------------------------------------------------------------------------------------

    def _detail(self, request: HttpRequest, key: Key, *, revealed: bool = False) -> HttpResponse:
        seen = look(key)
        context = self._context(request, seen, title=seen.subject)
        context |= page(seen, revealed=revealed)
        offers = [
            Offer(a.label, self._address("act", key.pk, a.name), a.refusal(seen), a.danger)
            for a in applicable(request, seen)
        ]
        context["actions"] = [offer for offer in offers if not offer.refusal]
        # Of a settled key nobody expects that something can be done; of an open one they do.
        context["refused"] = [o for o in offers if o.refusal] if key.settled_at is None else []
        context["may_reveal"] = request.user.has_perm("idempotency.view_payload")
        context["related"] = related(seen)
        context["doubles"] = doubles_of(seen, context["related"])
        if context["doubles"] and seen.situation is Situation.COMPLETED:
            context["advice"] = of_double(seen.advice)
        context["looks_only"] = seen.is_open_matter and not any(
            allowed(request, action) for action in ACTIONS.values()
        )
        context["alarms"] = [(event, title_of(event)) for event in unhandled_of(key.pk)]
        context["may_handle"] = request.user.has_perm(HANDLE)
        return TemplateResponse(request, "admin/idempotency/key/detail.html", context)

    def _context(self, request: HttpRequest, seen: Look, *, title: str) -> dict[str, Any]:
        request.current_app = self.admin_site.name
        return {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "media": self.media,
            "seen": seen,
            "advice": seen.advice,
        }

    def _key(self, request: HttpRequest, object_id: str) -> Key | None:
        try:
            key_id = uuid.UUID(object_id)
        except ValueError:
            return None
        found: Key | None = ConsoleAdmin.get_queryset(self, request).filter(pk=key_id).first()
        return found

    def _missing(self, request: HttpRequest) -> HttpResponse:
        messages.warning(request, "There is no such key, or it has been purged.")
        return redirect(self._address("changelist"))

    def _address(self, page_name: str, *args: object, query: str = "") -> str:
        name = f"admin:idempotency_key_{page_name}"
        address = reverse(name, args=args, current_app=self.admin_site.name)
        return f"{address}?{query}" if query else address
