"""Refunds: never more than was captured. Source: Stripe's API, "Refunds"."""

from __future__ import annotations

from payments.simulator.api import params, shapes, tokens
from payments.simulator.api.call import Call
from payments.simulator.api.errors import invalid_parameter, no_such_object, refused
from payments.simulator.api.tokens import Outcome
from payments.simulator.record import books
from payments.simulator.wire.http import Json

_REASONS = ("duplicate", "fraudulent", "requested_by_customer")


def create(call: Call) -> Json:
    """Refund a charge, or a part of it.

    Raises:
        ApiError: there is no such charge, it may not be refunded, or less is left of it than is asked for.
    """
    amount = params.amount(call.params)
    metadata = params.metadata(call.params)
    reason = params.choice(call.params, "reason", among=_REASONS, default=_REASONS[-1])
    charge = _charge_to_refund(call)
    becomes = tokens.payment_method(charge["payment_method"]).refund
    if becomes is Outcome.REFUSED:
        raise refused(f"Charge {charge['id']} is disputed.", code="refund_disputed_payment")
    refund = shapes.refund(
        charge, created=call.now, amount=_within_what_is_left(charge, amount), metadata=metadata
    )
    refund["reason"] = reason if "reason" in call.params else None
    _reserve(charge, refund["amount"])
    call.save(charge)
    call.save(refund)
    call.announce("refund.created", refund)
    if becomes is Outcome.SUCCEEDS:
        succeed(call, refund)
    return refund


def succeed(call: Call, refund: Json) -> None:
    """Send the money back."""
    refund.update(status="succeeded", balance_transaction=books.new_id("txn"))
    call.save(refund)
    call.move_money(refund, kind="refund", amount=refund["amount"])
    call.announce("charge.refunded", _charge_of(call, refund))
    call.announce("refund.updated", refund)


def fail(call: Call, refund: Json) -> None:
    """Give up a pending refund: the charge can be refunded again."""
    refund.update(status="failed", failure_reason="unknown")
    charge = _charge_of(call, refund)
    _reserve(charge, -refund["amount"])
    call.save(charge)
    call.save(refund)
    call.announce("refund.failed", refund)
    call.announce("refund.updated", refund)


def _charge_to_refund(call: Call) -> Json:
    intent_id = params.text(call.params, "payment_intent")
    charge_id = params.text(call.params, "charge")
    if intent_id is None and charge_id is None:
        raise invalid_parameter(
            "One of the following params should be provided for this request: payment_intent or"
            " charge.",
            param="payment_intent",
            code="parameter_missing",
        )
    if intent_id is not None:
        intent = books.find(call.tx, intent_id, object_type="payment_intent")
        if intent is None:
            raise no_such_object("payment_intent", intent_id, param="payment_intent", status=404)
        charge_id = intent["latest_charge"]
    charge = books.find(call.tx, charge_id, object_type="charge") if charge_id else None
    if charge is None and intent_id is None:
        raise no_such_object("charge", str(charge_id), param="charge", status=404)
    if charge is None or not charge["captured"]:
        raise refused(
            f"This PaymentIntent ({intent_id}) does not have a successful charge to refund."
            if intent_id
            else f"Charge {charge_id} has not been captured.",
            param="payment_intent" if intent_id else "charge",
        )
    return charge


def _within_what_is_left(charge: Json, amount: int | None) -> int:
    left: int = charge["amount_captured"] - charge["amount_refunded"]
    if left == 0:
        raise refused(
            f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded"
        )
    if amount is not None and amount > left:
        raise refused(
            f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})",
            param="amount",
        )
    return left if amount is None else amount


def _reserve(charge: Json, amount: int) -> None:
    """Count a refund as spent from its creation on, pending ones too, as Stripe does."""
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] == charge["amount_captured"]


def _charge_of(call: Call, refund: Json) -> Json:
    charge = books.find(call.tx, refund["charge"], object_type="charge")
    if charge is None:
        raise no_such_object("charge", refund["charge"], param="charge")
    return charge
