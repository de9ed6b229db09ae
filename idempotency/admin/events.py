"""The audit: who did what to which key, and what was alarming. Nobody edits it, the database sees to that."""

import uuid
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from idempotency.admin.base import ConsoleAdmin
from idempotency.admin.cells import two_lines
from idempotency.admin.moments import Moment
from idempotency.admin.redaction import evidence
from idempotency.admin.timeline import event_title
from idempotency.http.header import mask
from idempotency.models import Event


class AlarmFilter(admin.SimpleListFilter):
    """All events, or those that were alarming."""

    title = "kind"
    parameter_name = "alarming"

    def lookups(
        self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]"
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        return [("yes", "Alarming")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the choice."""
        return queryset.filter(alarming=True) if self.value() == "yes" else queryset


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
        return super().changelist_view(request, {"title": "Events", **(extra_context or {})})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead back to the list: it shows all that may be shown of an event."""
        return redirect(
            reverse("admin:idempotency_event_changelist", current_app=self.admin_site.name)
        )

    @admin.display(description="What")
    def what(self, event: Event) -> SafeString:
        """Show the kind of event, and its facts."""
        facts, _ = evidence({k: v for k, v in event.detail.items() if k != "form"}, revealed=False)
        return two_lines(event_title(event), ", ".join(f"{k}: {v}" for k, v in facts.items()))

    @admin.display(description="When")
    def seen(self, event: Event) -> SafeString:
        """Show when it was."""
        at = Moment.of(event.at, now=timezone.now())
        return format_html('<time datetime="{}" title="{}">{}</time>', at.iso, at.ago, at.text)

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
