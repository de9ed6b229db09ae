"""What is read: who the caller is, and what is theirs. Nothing here writes."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from django.db.models import QuerySet

from idempotency.ledger import states
from idempotency.types import OpenStep, State
from payments.gateway import Movement, Progress, Recipient
from payments.models import (
    Account,
    ApiUser,
    Delivery,
    Endpoint,
    Merchant,
    Payment,
    Payout,
    Receipt,
    Refund,
    Transfer,
)


def merchant_of(user: Any) -> Merchant | None:
    """Return the merchant that a user acts for, or None: staff, and people who only watch, act for nobody."""
    if not getattr(user, "is_authenticated", False) or user.is_staff:
        return None
    try:
        membership: ApiUser = user.api_user
    except ApiUser.DoesNotExist:
        return None
    return membership.merchant


def tenant_of(request: Any) -> str | None:
    """Return the id of the caller's merchant: the tenant part of a key's scope (R5)."""
    merchant = merchant_of(request.user)
    return None if merchant is None else str(merchant.pk)


def payments_of(merchant: Merchant, *, order_id: str | None = None) -> QuerySet[Payment]:
    """Return a merchant's payments, newest first: all, or those of one order."""
    mine = Payment.objects.filter(merchant=merchant)
    if order_id is not None:
        mine = mine.filter(order_id=order_id)
    return mine.order_by("-created_at", "-id")


def transfers_of(merchant: Merchant) -> QuerySet[Transfer]:
    """Return a merchant's transfers, newest first."""
    return Transfer.objects.filter(merchant=merchant).order_by("-created_at", "-id")


def accounts_of(merchant: Merchant) -> QuerySet[Account]:
    """Return a merchant's local accounts."""
    return Account.objects.filter(merchant=merchant).order_by("created_at", "name")


def refunds_of(payment: Payment) -> list[Refund]:
    """Return the refunds of a payment, oldest first."""
    return list(payment.refunds.order_by("created_at", "id"))


def payouts_of(merchant: Merchant) -> QuerySet[Payout]:
    """Return a merchant's payouts, newest first."""
    return Payout.objects.filter(merchant=merchant).order_by("-created_at", "-id")


def receipts_of(merchant: Merchant) -> QuerySet[Receipt]:
    """Return the receipts of a merchant's payments, newest first."""
    return Receipt.objects.filter(payment__merchant=merchant).order_by("-created_at", "-id")


def endpoints_of(merchant: Merchant) -> QuerySet[Endpoint]:
    """Return a merchant's endpoints, newest first."""
    mine = Endpoint.objects.filter(merchant=merchant).exclude(status=Endpoint.DELETED)
    return mine.order_by("-created_at", "-id")


def deliveries_of(endpoint: Endpoint) -> QuerySet[Delivery]:
    """Return an endpoint's deliveries with their tries, newest first."""
    sent: QuerySet[Delivery] = endpoint.deliveries.prefetch_related("attempts")
    return sent.order_by("-created_at", "-id")


class Shown(Protocol):
    """A row whose status depends on its key while the outcome is open."""

    key_id: uuid.UUID
    status: str


def shown_statuses(rows: Iterable[Shown]) -> dict[uuid.UUID, str]:
    """Return, by key, `unknown` for every pending row whose key is unknown: one query for all of them."""
    open_rows = [row.key_id for row in rows if row.status == "pending"]
    if not open_rows:
        return {}
    found = states(ids=open_rows)
    return {key: "unknown" for key, state in found.items() if state is State.UNKNOWN}


def with_shown_status(rows: Sequence[Shown]) -> Sequence[Shown]:
    """Return the rows as they are shown: those of an unknown key say so. For reading only."""
    unknown = shown_statuses(rows)
    for row in rows:
        row.status = unknown.get(row.key_id, row.status)
    return rows


def belongs_elsewhere(*, step: OpenStep, reference: str) -> bool:
    """Whether the gateway's id is on record for another movement of money than the step's."""
    if step.name == "recipient":
        return False
    own = _row_of(step)
    others = type(own)._default_manager.filter(gateway_reference=reference).exclude(pk=own.pk)
    return others.exists()


def seen_by_hand(*, step: OpenStep, reference: str) -> dict[str, Any]:
    """Return the record of a step that a person has seen applied: all of the row's own amount has moved."""
    if step.name == "recipient":
        return Recipient(id=reference).as_record()
    row = _row_of(step)
    return Movement(
        id=reference,
        status=Progress.SUCCEEDED,
        amount=row.amount,
        currency=row.payment.currency if isinstance(row, Refund) else row.currency,
    ).as_record()


def _row_of(step: OpenStep) -> Payment | Refund | Payout:
    """Return the row that the newest life of the step's key made."""
    rows: dict[str, type[Payment | Refund | Payout]] = {"refund": Refund, "payout": Payout}
    model = rows.get(step.name, Payment)
    return model._default_manager.filter(key_id=step.key_id).latest("generation")
