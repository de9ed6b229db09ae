"""Deferred work: what waits, what runs, what ended badly."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from idempotency.admin import search
from idempotency.admin.acting import allowed
from idempotency.admin.actions import ACTIONS
from idempotency.admin.base import ConsoleAdmin, query_of
from idempotency.admin.bulk import BulkPages
from idempotency.admin.cells import badge, headline, since
from idempotency.admin.detail import BODIES, glance
from idempotency.admin.filters import AgeFilter, OperationState
from idempotency.admin.known import note
from idempotency.conf import conf
from idempotency.http.header import mask
from idempotency.models import Key, Operation

_BODIES = ("input", "result", *(f"key__{name}" for name in BODIES))


class OperationAdmin(BulkPages, ConsoleAdmin):
    """The list of deferred work; each row leads to the page of its key."""

    list_display = ("state_shown", "about", "runs", "seen", "error_shown")
    list_display_links = ("about",)
    list_filter = (OperationState, AgeFilter)
    search_fields = ("key",)
    search_help_text = search.HELP

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave the bodies where they are."""
        return super().get_queryset(request).select_related("key").defer(*_BODIES)

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the order of the view."""
        return OperationState.order(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the work of the keys of which the text is an exact name."""
        if not search_term.strip():
            return queryset, False
        return queryset.filter(key_id__in=search.keys_for(search_term)), False

    # -- columns -----------------------------------------------------------------------------------

    @admin.display(description="What")
    def about(self, work: Operation) -> SafeString:
        """Show the line to read aloud."""
        return headline(glance(work.key))

    @admin.display(description="State")
    def state_shown(self, work: Operation) -> SafeString:
        """Show the situation in two words."""
        return badge(glance(work.key))

    @admin.display(description="Runs")
    def runs(self, work: Operation) -> str:
        """Show how many runs of this cycle are used up."""
        return f"{work.cycle_attempts} of {work.max_attempts}"

    @admin.display(description="First seen")
    def seen(self, work: Operation) -> SafeString:
        """Show when it was accepted."""
        return since(work.created_at)

    @admin.display(description="Last error")
    def error_shown(self, work: Operation) -> str:
        """Show what went wrong last, without anybody's data."""
        if work.error is not None:
            return str(work.error.get("code", "error"))
        return mask(work.last_error[:80])

    # -- pages -------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Return the pages of the console before Django's own."""
        many = transaction.non_atomic_requests(self.admin_site.admin_view(self._bulk))
        return [
            path("many/<slug:name>/", many, name="idempotency_operation_bulk"),
            *super().get_urls(),
        ]

    def _bulk(self, request: HttpRequest, name: str) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self.bulk_view(request, name)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, with what may be done to all of it."""
        fitting = {"failed": ("retry",), "waiting": ("retry", "cancel")}
        query = query_of(request)
        tools = [self.to_overview()]
        for name in fitting.get(OperationState.chosen(request), ()):
            if allowed(request, ACTIONS[name]):
                address = reverse(
                    "admin:idempotency_operation_bulk",
                    args=(name,),
                    current_app=self.admin_site.name,
                )
                tools.append((f"{name.capitalize()} these", f"{address}?{query}"))
        extra = {"title": "Deferred work", "tools": tools, **(extra_context or {})}
        response = super().changelist_view(request, extra)
        if isinstance(response, TemplateResponse) and "cl" in (response.context_data or {}):
            note(work.key for work in (response.context_data or {})["cl"].result_list)
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the page of the key, where the whole story is."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        work = self.get_object(request, object_id)
        if work is None:
            return redirect(
                reverse("admin:idempotency_operation_changelist", current_app=self.admin_site.name)
            )
        address = reverse(
            "admin:idempotency_key_change", args=(work.key_id,), current_app=self.admin_site.name
        )
        return redirect(address)

    def keys_of(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the keys of the work that the list with this address shows."""
        rows = self.rows_of(request)
        return Key.objects.using(conf.DATABASE).filter(pk__in=rows.values("key_id")[:1_000])
