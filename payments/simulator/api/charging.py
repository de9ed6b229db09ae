"""What becomes of a payment intent's money: paid, declined, held, or decided later."""

from __future__ import annotations

from payments.simulator.api import shapes, tokens
from payments.simulator.api.call import Call
from payments.simulator.api.errors import ApiError, card_refused
from payments.simulator.api.tokens import Decline, Outcome
from payments.simulator.record import books
from payments.simulator.wire.http import Json

_SETTLED_AS_FAILED = Decline("payment_method_provider_decline", "The payment was declined.")


def attempt(call: Call, intent: Json, *, off_session: bool, refuse_action: bool) -> None:
    """Try to charge an intent with its payment method, and write how it stands then.

    Raises:
        ApiError: declined; the intent and the charge are written all the same.
    """
    method = tokens.payment_method(intent["payment_method"])
    intent["payment_method_types"] = [method.type]
    match method.charge:
        case Outcome.SUCCEEDS:
            pay(call, intent)
        case Outcome.TAKES_TIME:
            _wait(call, intent)
        case Outcome.NEEDS_ACTION if off_session or refuse_action:
            raise turn_down(call, intent, tokens.AUTHENTICATION_REQUIRED)
        case Outcome.NEEDS_ACTION:
            _ask_customer(call, intent)
        case Outcome.DECLINED:
            raise turn_down(call, intent, method.decline or _SETTLED_AS_FAILED)


def pay(call: Call, intent: Json) -> None:
    """Take the money, or only hold it when it is to be captured later."""
    charge = _charge_of(call, intent)
    manual = intent["capture_method"] == "manual"
    charge.update(
        status="succeeded",
        paid=True,
        outcome={"network_status": "approved_by_network", "type": "authorized"},
        balance_transaction=None if manual else books.new_id("txn"),
    )
    intent.update(last_payment_error=None, latest_charge=charge["id"], next_action=None)
    if manual:
        intent.update(status="requires_capture", amount_capturable=intent["amount"])
        call.save(charge)
        call.save(intent)
        call.announce("payment_intent.amount_capturable_updated", intent)
    else:
        receive(call, intent, charge, amount=intent["amount"])


def receive(call: Call, intent: Json, charge: Json, *, amount: int) -> None:
    """Capture: the money moves now."""
    charge.update(captured=True, amount_captured=amount)
    intent.update(status="succeeded", amount_received=amount, amount_capturable=0)
    call.save(charge)
    call.save(intent)
    call.move_money(intent, kind="charge", amount=amount)
    call.announce("payment_intent.succeeded", intent)


def turn_down(call: Call, intent: Json, decline: Decline | None = None) -> ApiError:
    """Write a decline; return the refusal to answer with, should there be someone to answer."""
    why = decline or _SETTLED_AS_FAILED
    charge = _charge_of(call, intent)
    charge.update(
        status="failed",
        failure_code=why.code,
        failure_message=why.message,
        outcome={
            "network_status": "declined_by_network",
            "reason": why.decline_code or why.code,
            "type": "issuer_declined",
        },
    )
    error: Json = {
        "charge": charge["id"],
        "code": why.code,
        "decline_code": why.decline_code,
        "message": why.message,
        "type": "card_error",
    }
    intent.update(
        status="requires_payment_method",
        latest_charge=charge["id"],
        next_action=None,
        last_payment_error=error,
        payment_method=None,
    )
    call.save(charge)
    call.save(intent)
    call.announce("payment_intent.payment_failed", intent)
    return card_refused(
        why.message,
        code=why.code,
        decline_code=why.decline_code,
        charge=charge["id"],
        intent=intent,
    )


def _wait(call: Call, intent: Json) -> None:
    charge = _charge_of(call, intent)
    intent.update(status="processing", latest_charge=charge["id"])
    call.save(charge)
    call.save(intent)
    call.announce("payment_intent.processing", intent)


def _ask_customer(call: Call, intent: Json) -> None:
    intent.update(
        status="requires_action",
        next_action={"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure"}},
    )
    call.save(intent)
    call.announce("payment_intent.requires_action", intent)


def _charge_of(call: Call, intent: Json) -> Json:
    latest = intent["latest_charge"]
    charge = books.find(call.tx, latest, object_type="charge") if latest else None
    if charge is None or charge["status"] == "failed":
        return shapes.charge(intent, created=call.now)
    return charge
