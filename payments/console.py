"""What payments tells the staff console: who a caller is, what became of the money, which charges are of one order."""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from django.contrib.auth import get_user_model
from django.urls import reverse

from idempotency.types import Known
from payments.models import Merchant, Payment, Payout, Refund
from payments.money import shown


class KeyRow(Protocol):
    """A key, as much of it as is read here."""

    pk: uuid.UUID
    scope: str
    generation: int


TAKEN = ("succeeded", "processing")
"""Statuses of a payment that has taken the money, or may yet."""

_REFUSED = ("declined", "action_required", "refused")

_SCOPE = re.compile(r"\d+:(\d+)/user:(\d+)")


def known(keys: Sequence[KeyRow]) -> Mapping[uuid.UUID, Known]:
    """Return by a key's id what is known here: five queries, however many keys there are."""
    owners = _owners({key.scope for key in keys})
    rows = _rows({key.pk: key.generation for key in keys})
    return {key.pk: _known(owners.get(key.scope, ""), rows.get(key.pk)) for key in keys}


def paid_twice(payments: Iterable[Payment]) -> dict[uuid.UUID, list[Payment]]:
    """Return for those of the payments whose order was paid more than once all payments of that order.

    What was refunded as a whole does not count.
    """
    asked = list(payments)
    orders = {(payment.merchant_id, payment.order_id) for payment in asked}
    rows = Payment.objects.filter(order_id__in={order for _, order in orders}, status__in=TAKEN)
    by_order: dict[tuple[int, str], list[Payment]] = {}
    for row in rows.order_by("created_at")[:500]:
        if row.refunded_amount < row.amount:
            by_order.setdefault((row.merchant_id, row.order_id), []).append(row)
    found = {p.pk: by_order.get((p.merchant_id, p.order_id), []) for p in asked}
    return {pk: rows for pk, rows in found.items() if len(rows) > 1 and pk in {r.pk for r in rows}}


# -- who ---------------------------------------------------------------------------------------------------------------


def _owners(scopes: set[str]) -> dict[str, str]:
    """Return by scope the merchant and the user that it stands for."""
    read = {scope: _SCOPE.fullmatch(scope) for scope in scopes}
    ids = {scope: (int(m[1]), int(m[2])) for scope, m in read.items() if m}
    if not ids:
        return {}
    merchants = Merchant.objects.in_bulk([merchant for merchant, _ in ids.values()])
    users = get_user_model()._default_manager.in_bulk([user for _, user in ids.values()])
    return {
        scope: f"{merchants[merchant]}, user {users[user].get_username()}"
        for scope, (merchant, user) in ids.items()
        if merchant in merchants and user in users
    }


# -- what --------------------------------------------------------------------------------------------------------------


def _rows(generations: Mapping[uuid.UUID, int]) -> dict[uuid.UUID, Any]:
    """Return by key the row that its present life made."""
    ids = list(generations)
    rows = [
        *Payment.objects.filter(key_id__in=ids),
        *Refund.objects.filter(key_id__in=ids).select_related("payment"),
        *Payout.objects.filter(key_id__in=ids),
    ]
    return {row.key_id: row for row in rows if row.generation == generations[row.key_id]}


def _known(owner: str, row: Payment | Refund | Payout | None) -> Known:
    if row is None:
        return Known(owner=owner)
    model = row._meta.model_name or ""
    return Known(
        owner=owner,
        since=_since(row),
        undecided=row.status == "processing",
        undone=row.status in _REFUSED,
        # Part refunds of one order are several, and rightly so.
        counts=isinstance(row, Payment) and row.status in TAKEN and not _given_back(row),
        label=f"{model} {str(row.pk)[:8]}…",
        address=reverse(f"admin:payments_{model}_change", args=[row.pk]),
    )


def _since(row: Payment | Refund | Payout) -> str:
    if row.status == "processing":
        return "the gateway has not decided yet"
    if isinstance(row, Payment) and row.refunded_amount:
        refunded, amount = (shown(sum_, row.currency) for sum_ in (row.refunded_amount, row.amount))
        return f"refunded since: {refunded} of {amount}"
    if row.status in _REFUSED:
        why = row.decline_reason if isinstance(row, Payment) else row.refusal
        return f"no money has moved: the gateway refused it ({why})"
    return ""


def _given_back(payment: Payment) -> bool:
    return payment.refunded_amount >= payment.amount
