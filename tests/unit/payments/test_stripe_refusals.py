"""What Stripe's errors and statuses mean to us, one line each."""

from typing import Any

import pytest
import stripe

from idempotency.exceptions import AccountRefused, CallError, CallFailed, CallRejected, CallUnknown
from idempotency.types import Absent, Applied, LookUp, Pending, Rejected
from payments.gateway import ACTION_REQUIRED
from payments.gateway.stripe import shapes
from payments.gateway.stripe.refusals import translated


def raised_for(error: BaseException) -> BaseException:
    with pytest.raises(BaseException) as raised, translated():
        raise error
    return raised.value


def invalid(*, code: str = "", param: str = "", status: int = 400) -> stripe.InvalidRequestError:
    return stripe.InvalidRequestError(  # type: ignore[no-untyped-call]
        "No such thing: 'what was sent'", param or None, code or None, http_status=status
    )


@pytest.mark.parametrize(
    ("code", "param"),
    [
        ("resource_missing", "payment_method"),
        ("resource_missing", "destination"),
        ("amount_too_large", "amount"),
        ("", "amount"),
        ("charge_already_refunded", ""),
        ("balance_insufficient", ""),
        ("resource_missing", "payment_intent"),
        ("not_storable\0", "amount"),
    ],
)
def test_r14_what_the_caller_sent_wrong_is_a_rejection(code: str, param: str) -> None:
    error = raised_for(invalid(code=code, param=param))
    assert isinstance(error, CallRejected)
    assert error.code == (code.strip("\0") or "invalid_request")
    assert "what was sent" not in f"{error} {error.record}"


@pytest.mark.parametrize(
    ("code", "param", "status"),
    [
        ("account_invalid", "", 400),
        ("parameter_unknown", "payment_methode", 400),
        ("parameter_missing", "confirm", 400),
        ("", "metadata[reference]", 400),
        ("", "", 404),
    ],
)
def test_r14_what_we_do_wrong_is_a_failure_that_was_sent(
    code: str, param: str, status: int
) -> None:
    error = raised_for(invalid(code=code, param=param, status=status))
    assert isinstance(error, CallFailed)
    assert (error.code, error.sent) == ("gateway-unavailable", True)
    assert "what was sent" not in str(error)


@pytest.mark.parametrize(
    ("kind", "status", "to_all"),
    [(stripe.AuthenticationError, 401, True), (stripe.PermissionError, 403, False)],
)
def test_r14_our_credentials_are_a_failure(
    kind: type[stripe.StripeError], status: int, to_all: bool
) -> None:
    error = raised_for(kind("Invalid API Key provided: sk_test_***", http_status=status))
    assert isinstance(error, CallFailed)
    assert isinstance(error, AccountRefused) is to_all
    assert (error.code, error.sent) == ("gateway-unavailable", True)
    assert "sk_test" not in str(error)


def test_an_error_without_a_class_of_its_own_keeps_its_code() -> None:
    body = {"error": {"type": "idempotency_error", "code": "idempotency_key_in_use"}}
    error = raised_for(stripe.APIError("in use", http_status=409, json_body=body))
    assert isinstance(error, stripe.APIError)
    assert error.code == "idempotency_key_in_use"


def test_what_is_not_stripes_no_is_let_out() -> None:
    own = stripe.IdempotencyError("reused", http_status=400)
    assert raised_for(own) is own
    assert isinstance(raised_for(OSError()), OSError)


def intent(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "pi_1", "status": status, "amount": 5, "currency": "eur", **more}


@pytest.mark.parametrize(
    ("read", "thing", "kind"),
    [
        (shapes.charge, intent("succeeded"), Applied),
        (shapes.charge, intent("processing"), Applied),
        (shapes.charge, intent("requires_action"), Rejected),
        (shapes.charge, intent("canceled"), Rejected),
        (
            shapes.charge,
            intent("requires_payment_method", last_payment_error={"code": "x"}),
            Rejected,
        ),
        (shapes.charge, intent("requires_payment_method", last_payment_error=None), Pending),
        (shapes.charge, intent("requires_confirmation"), Pending),
        (shapes.charge, intent("something_new"), Pending),
        (shapes.refund, intent("succeeded"), Applied),
        (shapes.refund, intent("pending"), Applied),
        (shapes.refund, intent("requires_action"), Applied),
        (shapes.refund, intent("failed"), Rejected),
        (shapes.refund, intent("canceled"), Rejected),
        (shapes.refund, intent("something_new"), Pending),
        (shapes.payout, intent("paid"), Applied),
        (shapes.payout, intent("in_transit"), Applied),
        (shapes.payout, intent("pending"), Applied),
        (shapes.payout, intent("failed", failure_code="account_closed"), Rejected),
        (shapes.payout, intent("something_new"), Pending),
    ],
)
def test_every_status_has_one_meaning(
    read: shapes.Reader, thing: dict[str, Any], kind: type
) -> None:
    assert isinstance(read(thing), kind)


def test_what_was_captured_in_part_has_moved_that_part() -> None:
    verdict = shapes.charge(intent("succeeded", amount_received=3))
    assert isinstance(verdict, Applied)
    assert verdict.result.record["amount"] == 3


def test_only_the_customer_can_go_on() -> None:
    verdict = shapes.charge(intent("requires_action"))
    assert isinstance(verdict, Rejected)
    assert verdict.code == ACTION_REQUIRED


@pytest.mark.parametrize("verdict", [Pending(), Absent()])
def test_r24_a_send_that_is_not_decided_is_unknown(verdict: LookUp) -> None:
    with pytest.raises(CallError) as raised:
        shapes.result(verdict)
    assert isinstance(raised.value, CallUnknown)
