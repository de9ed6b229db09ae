"""What Stripe's objects mean to us: each is read as a verdict, in every path alike.

A status that is not known here is no verdict: `Pending`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from idempotency.exceptions import CallRejected, CallUnknown
from idempotency.types import Absent, Applied, LookUp, OutsideResult, Pending, Rejected
from payments.gateway.port import Movement, Progress, Recipient
from payments.gateway.stripe.refusals import code_of, declined

Reader = Callable[[Mapping[str, Any]], LookUp]


def result(verdict: LookUp) -> OutsideResult:
    """Return what a send comes to, or raise it.

    Raises:
        CallRejected: it was refused.
        CallUnknown: it is known there, and nothing is decided.
    """
    match verdict:
        case Applied(result):
            return result
        case Rejected(detail, code, refused):
            raise CallRejected(
                detail, code=code, reference=refused.reference, record=refused.record
            )
        case Pending() | Absent():
            raise CallUnknown("The gateway has taken the call on and not decided it.")


def charge(intent: Mapping[str, Any]) -> LookUp:
    """Read a payment intent."""
    match intent["status"]:
        case "succeeded":
            # What has moved: of a payment that was captured in part it is less than `amount`.
            received = intent.get("amount_received", intent["amount"])
            return _applied({**intent, "amount": received}, Progress.SUCCEEDED)
        case "processing":
            return _applied(intent, Progress.PROCESSING)
        case "requires_action":
            return _refused(intent, code="authentication_required")
        case "canceled":
            return _refused(intent, code="canceled")
        case "requires_payment_method" if intent.get("last_payment_error"):
            return _declined(intent)
        case _:
            return Pending()


def refund(thing: Mapping[str, Any]) -> LookUp:
    """Read a refund."""
    match thing["status"]:
        case "succeeded":
            return _applied(thing, Progress.SUCCEEDED)
        case "pending" | "requires_action":
            return _applied(thing, Progress.PROCESSING)
        case "failed" | "canceled":
            return _refused(thing, code=str(thing.get("failure_reason") or thing["status"]))
        case _:
            return Pending()


def payout(thing: Mapping[str, Any]) -> LookUp:
    """Read a payout."""
    match thing["status"]:
        case "paid":
            return _applied(thing, Progress.SUCCEEDED)
        case "pending" | "in_transit":
            return _applied(thing, Progress.PROCESSING)
        case "failed" | "canceled":
            return _refused(thing, code=str(thing.get("failure_code") or thing["status"]))
        case _:
            return Pending()


def recipient(account: Mapping[str, Any]) -> LookUp:
    """Read an account that can be paid."""
    known = Recipient(id=str(account["id"]))
    return Applied(OutsideResult(reference=known.id, record=known.as_record()))


def _applied(thing: Mapping[str, Any], status: Progress) -> Applied:
    movement = Movement(
        id=str(thing["id"]),
        status=status,
        amount=int(thing["amount"]),
        currency=str(thing["currency"]).upper(),
    )
    return Applied(OutsideResult(reference=movement.id, record=movement.as_record()))


def _declined(intent: Mapping[str, Any]) -> Rejected:
    error = declined({**intent["last_payment_error"], "payment_intent": intent})
    refused = OutsideResult(reference=error.reference, record=error.record)
    return Rejected(detail=error.detail, code=error.code, result=refused)


def _refused(thing: Mapping[str, Any], *, code: str) -> Rejected:
    gateway_id = str(thing["id"])
    return Rejected(
        detail=f"The gateway gave it up: {code}.",
        code=code_of(code=code),
        result=OutsideResult(reference=gateway_id, record={"id": gateway_id, "code": code}),
    )
