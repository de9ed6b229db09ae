"""The console's lists of what was paid: for looking, never for editing.

Money is moved by the API and by the keys' own actions, which leave a trace; a list that could change a row would not.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from idempotency.admin.base import ConsoleAdmin
from idempotency.admin.cells import since
from payments import endpointadmin, queries
from payments.console import paid_twice
from payments.models import Account, Payment, Payout, Receipt, Refund, Transfer
from payments.money import shown

__all__ = ["endpointadmin"]


class MoneyAdmin(ConsoleAdmin):
    """A list of rows that were made under a key.

    Attributes:
        sought: columns that a search compares as a whole, by the names that staff have for them; each has an index.
        sums: columns of minor units, and what shows each with its currency instead.
    """

    sought: Mapping[str, str] = {}
    sums: Mapping[str, str] = {"amount": "money"}
    # Shows the search box; what it does is `get_search_results`.
    search_fields = ("id",)
    ordering = ("-created_at",)

    @property
    def search_help_text(self) -> str:  # type: ignore[override]
        """Return what the search box finds."""
        return f"Exact: {', '.join([*self.sought.values(), 'id', 'operation_ref'])}."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by a whole number or id: no row is looked for that an index does not lead to."""
        term = search_term.strip()
        if not term:
            return queryset, False
        wanted = Q()
        for column in self.sought:
            wanted |= Q(**{column: term})
        try:
            wanted |= Q(pk=uuid.UUID(term)) | Q(key_id=uuid.UUID(term))
        except ValueError:
            wanted = wanted or Q(pk__in=[])
        return queryset.filter(wanted), False

    @admin.display(description="created")
    def made(self, row: Any) -> SafeString:
        """Return when it was made, as the pages of keys say it."""
        return since(row.created_at)

    @admin.display(description="amount")
    def money(self, row: Any) -> str:
        """Return the amount with its currency."""
        return shown(row.amount, row.currency)

    @admin.display(description="id")
    def number(self, row: Any) -> str:
        """Return as much of the id as tells rows apart; the row's own page has all of it."""
        return f"{str(row.pk)[:8]}…"

    @admin.display(description="key")
    def key(self, row: Any) -> str:
        """Return a link to the key under which the row was made, which may have been purged."""
        address = reverse("admin:idempotency_key_change", args=[row.key_id])
        return format_html('<a href="{}">{}…</a>', address, str(row.key_id)[:13])

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        """Return every column, and the link; no bare number of minor units, which reads as a hundred times as much."""
        names = (field.name for field in self.model._meta.fields)
        return [*(self.sums.get(name, name) for name in names), "key"]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Return the same: nothing here is edited."""
        return self.get_readonly_fields(request, obj)


class MovingAdmin(MoneyAdmin):
    """A list of rows whose status is what their key says, as long as nobody knows better."""

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Return the list with the statuses that the API shows."""
        listed = super().get_changelist_instance(request)
        listed.result_list = queries.with_shown_status(list(listed.result_list))
        return listed

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the row with the status that the API shows."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            queries.with_shown_status([row])
        return row


@admin.register(Payment)
class PaymentAdmin(MovingAdmin):
    """Charges."""

    list_display = (
        "number", "merchant", "order_id", "money", "status", "made", "key", "gateway_reference"
    )  # fmt: skip
    list_filter = ("status", "merchant")
    list_select_related = ("merchant",)
    sought = {"order_id": "order", "gateway_reference": "gateway reference"}
    sums = {"amount": "money", "refunded_amount": "refunded", "refunded_reserved": "reserved"}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; say first which orders on it were paid more than once."""
        response = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None) or {}
        if "cl" in context:
            _warn(request, context["cl"].result_list)
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one payment; say first if its order was paid more than once."""
        payment = self.get_object(request, object_id)
        if payment is not None and self.has_view_permission(request, payment):
            _warn(request, [payment])
        return super().change_view(request, object_id, form_url, extra_context)

    @admin.display(description="refunded")
    def refunded(self, row: Payment) -> str:
        """Return what was given back."""
        return shown(row.refunded_amount, row.currency)

    @admin.display(description="refunded or about to be")
    def reserved(self, row: Payment) -> str:
        """Return what was given back, is being, or may have been."""
        return shown(row.refunded_reserved, row.currency)


def _warn(request: HttpRequest, payments: Iterable[Payment]) -> None:
    """Tell which orders were paid more than once, each of them once."""
    for rows in {
        tuple(row.pk for row in rows): rows for rows in paid_twice(payments).values()
    }.values():
        said = ", ".join(
            f"{shown(row.amount, row.currency)} ({row.gateway_reference})" for row in rows
        )
        messages.warning(
            request,
            f"Order {rows[0].order_id} was paid {len(rows)} times: {said}. "
            "If the customer meant it once, refund one of them.",
        )


@admin.register(Refund)
class RefundAdmin(MovingAdmin):
    """Refunds."""

    list_display = ("number", "payment", "money", "status", "made", "key", "gateway_reference")
    list_filter = ("status",)
    list_select_related = ("payment",)
    sought = {"payment__order_id": "order", "gateway_reference": "gateway reference"}

    @admin.display(description="amount")
    def money(self, row: Any) -> str:
        """Return the amount in the payment's currency."""
        return shown(row.amount, row.payment.currency)


@admin.register(Payout)
class PayoutAdmin(MovingAdmin):
    """Payouts."""

    list_display = (
        "number", "merchant", "money", "destination", "status", "made", "key", "gateway_reference"
    )  # fmt: skip
    list_filter = ("status", "merchant")
    list_select_related = ("merchant",)
    sought = {"gateway_reference": "gateway reference"}


@admin.register(Receipt)
class ReceiptAdmin(MovingAdmin):
    """Receipts."""

    list_display = ("number", "payment", "email", "status", "issued_at", "made", "key")
    list_filter = ("status",)
    list_select_related = ("payment",)
    sought = {"payment__order_id": "order"}


@admin.register(Transfer)
class TransferAdmin(MoneyAdmin):
    """Local transfers."""

    list_display = ("number", "merchant", "from_account", "to_account", "money", "made", "key")
    list_filter = ("merchant",)
    list_select_related = ("merchant", "from_account", "to_account")


@admin.register(Account)
class AccountAdmin(ConsoleAdmin):
    """Local accounts."""

    list_display = fields = readonly_fields = ("name", "merchant", "balance_shown", "created_at")
    list_select_related = ("merchant",)
    list_filter = ("merchant",)

    @admin.display(description="balance")
    def balance_shown(self, row: Account) -> str:
        """Return the balance with its currency."""
        return shown(row.balance, row.currency)
