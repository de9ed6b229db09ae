"""Payment intents: create, confirm, capture, cancel. Source: Stripe's API, "PaymentIntents"."""

from __future__ import annotations

from payments.simulator.api import charging, params, shapes, tokens
from payments.simulator.api.call import Call
from payments.simulator.api.errors import ApiError, invalid_parameter, no_such_object, refused
from payments.simulator.record import books
from payments.simulator.wire.http import Json

_CAPTURE_METHODS = ("automatic", "automatic_async", "manual")
_CONFIRMABLE = ("requires_payment_method", "requires_confirmation", "requires_action")
_CANCELABLE = (*_CONFIRMABLE, "requires_capture")
_TEXTS = ("customer", "description", "receipt_email", "statement_descriptor", "transfer_group")


def create(call: Call) -> Json:
    """Create an intent, and confirm it at once when asked to.

    Raises:
        ApiError: a parameter is missing or wrong, or the card was declined.
    """
    given = call.params
    if "payment_method_data" in given:
        raise invalid_parameter(
            "Card data is not taken here: send a test token as payment_method.",
            param="payment_method_data",
        )
    intent = shapes.payment_intent(
        created=call.now,
        amount=params.required_amount(given),
        currency=params.currency(given),
        metadata=params.metadata(given),
        capture_method=params.choice(
            given, "capture_method", among=_CAPTURE_METHODS, default="automatic"
        ),
        **{name: params.text(given, name) for name in _TEXTS},
    )
    confirm_now = params.flag(given, "confirm")
    _choose_method(given, intent)
    if confirm_now:
        _confirm(call, intent)
    else:
        call.save(intent)
    return intent


def confirm(call: Call) -> Json:
    """Confirm an intent: this is what charges the card.

    Raises:
        ApiError: it cannot be confirmed in its state, or the card was declined.
    """
    intent = _requested(call)
    _require_state(intent, among=_CONFIRMABLE, act="confirm")
    _choose_method(call.params, intent)
    _confirm(call, intent)
    return intent


def capture(call: Call) -> Json:
    """Capture what an intent holds, or a part of it; the rest is let go.

    Raises:
        ApiError: nothing is held, or less than is asked for.
    """
    amount = params.amount(call.params, "amount_to_capture")
    intent = _requested(call)
    _require_state(intent, among=("requires_capture",), act="capture")
    held: int = intent["amount_capturable"]
    if amount is not None and amount > held:
        raise refused(
            "The requested capture amount is greater than the amount you can capture for this"
            " charge.",
            code="amount_too_large",
            param="amount_to_capture",
        )
    charge = books.find(call.tx, intent["latest_charge"]) or shapes.charge(intent, created=call.now)
    charge["balance_transaction"] = books.new_id("txn")
    charging.receive(call, intent, charge, amount=amount or held)
    return intent


def cancel(call: Call) -> Json:
    """Cancel an intent that has moved no money.

    Raises:
        ApiError: it is too late.
    """
    intent = _requested(call)
    _require_state(intent, among=_CANCELABLE, act="cancel")
    intent.update(
        status="canceled",
        amount_capturable=0,
        canceled_at=int(call.now),
        cancellation_reason=params.text(call.params, "cancellation_reason"),
        next_action=None,
    )
    call.save(intent)
    call.announce("payment_intent.canceled", intent)
    return intent


def _choose_method(given: Json, intent: Json) -> None:
    method = params.text(given, "payment_method")
    if method is not None:
        tokens.payment_method(method)
        intent.update(payment_method=method, status="requires_confirmation")


def _confirm(call: Call, intent: Json) -> None:
    if intent["payment_method"] is None:
        raise refused(
            "You cannot confirm this PaymentIntent because it's missing a payment method.",
            code="payment_intent_unexpected_state",
        )
    charging.attempt(
        call,
        intent,
        # Stripe takes true, false, "recurring" and "one_off".
        off_session=params.text(call.params, "off_session") not in (None, "false"),
        refuse_action=params.flag(call.params, "error_on_requires_action"),
    )


def _requested(call: Call) -> Json:
    intent = books.find(call.tx, call.args[0], object_type="payment_intent")
    if intent is None:
        raise no_such_object("payment_intent", call.args[0], param="intent", status=404)
    return intent


def _require_state(intent: Json, *, among: tuple[str, ...], act: str) -> None:
    if intent["status"] not in among:
        raise _unexpected_state(intent, act)


def _unexpected_state(intent: Json, act: str) -> ApiError:
    return refused(
        f"This PaymentIntent could not be changed by {act} because it has a status of"
        f" {intent['status']}.",
        code="payment_intent_unexpected_state",
        details={"payment_intent": intent},
    )
