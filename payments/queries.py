"""What is read: who the caller is, and what is theirs. Nothing here writes."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from django.db.models import QuerySet

from idempotency.ledger import states
from idempotency.types import State
from payments.models import Account, ApiUser, Merchant, Payment, Transfer


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


def payments_of(merchant: Merchant) -> QuerySet[Payment]:
    """Return a merchant's payments, newest first."""
    return Payment.objects.filter(merchant=merchant).order_by("-created_at", "-id")


def transfers_of(merchant: Merchant) -> QuerySet[Transfer]:
    """Return a merchant's transfers, newest first."""
    return Transfer.objects.filter(merchant=merchant).order_by("-created_at", "-id")


def accounts_of(merchant: Merchant) -> QuerySet[Account]:
    """Return a merchant's local accounts."""
    return Account.objects.filter(merchant=merchant).order_by("created_at", "name")


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
