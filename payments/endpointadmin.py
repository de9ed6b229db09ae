"""The console's pages of merchants' endpoints and of what is delivered to them.

They show; what may be done is a page of its own each, with a reason, and is on record before it is done.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from idempotency.admin import audit
from idempotency.admin.acting import REPEATED, back
from idempotency.admin.base import ConsoleAdmin
from idempotency.admin.cells import since
from idempotency.admin.forms import ActionForm
from payments import completion
from payments.models import Delivery, DeliveryAttempt, Endpoint
from payments.serializers import PING

PERMISSION = "payments.operate_payments"


@dataclass(frozen=True, slots=True)
class Act:
    """Something that may be done to a row."""

    label: str
    consequences: tuple[str, ...]
    run: Callable[[Any], bool]
    """Returns whether there was something to do."""


class Acting(ConsoleAdmin):
    """A list to whose rows staff may do something, once for each form, with a reason."""

    acts: Mapping[str, Act] = {}
    shown: tuple[str, ...] = ()

    def offered(self, row: Any) -> str:
        """Return the name of what may be done to the row now, or ""."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        """Return the page on which it is done before Django's own."""
        page = self.admin_site.admin_view(self._act_view)
        return [
            path("<uuid:pk>/act/<slug:act>/", page, name=self._name("act")),
            *super().get_urls(),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        """Return what is shown, with what may be done where this person may."""
        return [*self.shown, *(["doing"] if request.user.has_perm(PERMISSION) else [])]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return the same: nothing here is edited."""
        return self.get_readonly_fields(request, obj)

    @admin.display(description="what can be done")
    def doing(self, row: Any) -> SafeString | str:
        """Return a link to the page on which it is done."""
        name = self.offered(row)
        if not name:
            return "nothing now"
        address = reverse(f"admin:{self._name('act')}", args=[row.pk, name])
        return format_html('<a href="{}">{}…</a>', address, self.acts[name].label)

    def _act_view(self, request: HttpRequest, pk: Any, act: str) -> HttpResponse:
        if not self.has_view_permission(request) or not request.user.has_perm(PERMISSION):
            raise PermissionDenied
        row, wanted = get_object_or_404(self.model, pk=pk), self.acts.get(act)
        if wanted is None:
            raise PermissionDenied
        address = reverse(f"admin:{self._name('change')}", args=[row.pk])
        form = ActionForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            _perform(request, row, wanted, form)
            return back(address)
        context = {
            **self.admin_site.each_context(request),
            "title": wanted.label,
            "row": row,
            "form": form,
            "cancel": address,
            "consequences": wanted.consequences,
        }
        return render(request, "admin/payments/act.html", context)

    def _name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"


def _perform(request: HttpRequest, row: Any, act: Act, form: ActionForm) -> None:
    begun = audit.begin(
        form=form.cleaned_data["form"],
        kind="staff-webhook",
        actor=request.user.get_username(),
        reason=form.cleaned_data["reason"],
        detail={"asked": act.label, "about": str(row), "id": str(row.pk)},
    )
    if not begun:
        messages.warning(request, REPEATED)
    elif act.run(row):
        messages.success(request, f"{act.label}: done.")
    else:
        messages.warning(request, "It was so already: there was nothing to do.")


@admin.register(Endpoint)
class EndpointAdmin(Acting):
    """Endpoints; never their secrets."""

    list_display = (
        "address",
        "merchant",
        "status",
        "disabled_because",
        "failures",
        "failing_since",
    )
    list_filter = ("status", "merchant")
    list_select_related = ("merchant",)
    ordering = ("-created_at",)
    shown = (
        "merchant", "address", "description", "events", "status", "disabled_because", "failures", "failing_since",
        "failed_at", "created_at", "sent",
    )  # fmt: skip
    acts = {
        "off": Act(
            "Switch off",
            ("Nothing is announced to it any more.", "What waits for it ends as failed."),
            partial(completion.disable, because="switched off by staff"),
        ),
        "on": Act(
            "Switch on",
            (
                "It is told of what is settled from now on.",
                "What it missed while it was off is not announced afterwards.",
            ),
            completion.enable,
        ),
    }

    def offered(self, row: Endpoint) -> str:
        """Return the other way of its switch."""
        return {Endpoint.ENABLED: "off", Endpoint.DISABLED: "on"}.get(row.status, "")

    @admin.display(description="address")
    def address(self, row: Endpoint) -> str:
        """Return the address without its query."""
        return str(row)

    @admin.display(description="deliveries")
    def sent(self, row: Endpoint) -> SafeString:
        """Return a link to what was sent there."""
        address = reverse("admin:payments_delivery_changelist")
        return format_html('<a href="{}?endpoint__id__exact={}">all of them</a>', address, row.pk)


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]  # no class at run time has parameters
    """The tries of a delivery."""

    model = DeliveryAttempt
    fields = ["at", "status", "error", "milliseconds"]
    readonly_fields = ["at", "status", "error", "milliseconds"]
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: tries are made by workers."""
        return False


@admin.register(Delivery)
class DeliveryAdmin(Acting):
    """What was announced, to whom, and what came of it; never what it says."""

    list_display = ("event", "status", "about", "seen", "endpoint", "ending", "webhook_id")
    list_filter = ("status", "event", "endpoint__merchant")
    list_select_related = ("endpoint",)
    ordering = ("-created_at",)
    # Shows the search box; what it does is `get_search_results`.
    search_fields = ("id",)
    search_help_text = "Exact: webhook-id, id of the deferred work."
    inlines = [AttemptInline]
    shown = (
        "webhook_id", "event", "about", "endpoint", "status", "ending", "created_at", "queued_at", "ended_at", "work",
    )  # fmt: skip
    acts = {
        "again": Act(
            "Send again",
            (
                "The same event goes to the same endpoint under the same webhook-id.",
                "A receiver that has it already does nothing with it.",
                "An endpoint that is switched off gets nothing: switch it on first.",
            ),
            completion.send_again,
        )
    }

    def offered(self, row: Delivery) -> str:
        """Return that it can be sent again once it has ended."""
        return "" if row.status == Delivery.WAITING else "again"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by the id that the receiver knows, or by that of the work."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            sought = uuid.UUID(term.removeprefix("msg_"))
        except ValueError:
            return queryset.none(), False
        return queryset.filter(Q(pk=sought) | Q(operation_id=sought)), False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allow the list of one endpoint."""
        return lookup == "endpoint__id__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(description="about")
    def about(self, row: Delivery) -> SafeString | str:
        """Return a link to the row that moved."""
        if row.event == PING:
            return "–"
        name = f"admin:payments_{row.event.partition('.')[0]}_change"
        return format_html(
            '<a href="{}">{}…</a>',
            reverse(name, args=[row.subject_id]),
            str(row.subject_id)[:8],
        )

    @admin.display(description="announced")
    def seen(self, row: Delivery) -> SafeString:
        """Return how long ago it was announced."""
        return since(row.created_at)

    @admin.display(description="deferred work")
    def work(self, row: Delivery) -> SafeString | str:
        """Return a link to the work that delivers it, with the whole story."""
        if row.operation_id is None:
            return ""
        address = reverse("admin:idempotency_operation_change", args=[row.operation_id])
        return format_html('<a href="{}">{}</a>', address, row.operation_id)
