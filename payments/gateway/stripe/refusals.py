"""What Stripe's refusals mean to us. Source: Stripe's API reference, "Errors" and "Error codes".

# Note [Whose fault a 400 is]
Stripe says "nothing was executed" with each 4xx but 409 (in use) and the idempotency errors. What that means depends on
whom it is said to. To the caller, about a value of theirs or the state of their payment: a business "no", which is
the key's final answer, a `CallRejected`. To us, about our credentials, our account or a request that we built wrongly:
a `CallFailed`, so that the key is free and, once that is repaired, the next try is made under a new downstream key;
Stripe remembers such an answer under the old one (R14, R23).
Where it is not clear, it is said to us: an operator can repair it, and no customer is told a final "no" for it.

No text of Stripe's but a card's decline is passed on, and no error object: it may repeat what was sent, and an intent
carries its client secret.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import stripe

from idempotency.exceptions import AccountRefused, CallFailed, CallRejected
from payments.gateway.port import ACTION_REQUIRED

# Parameters whose value is the caller's.
_CALLERS = frozenset(
    {"amount", "charge", "currency", "destination", "external_account", "payment_intent"}
    | {"payment_method", "source"}
)
# Said of the state of things, with or without a parameter.
_STATES = frozenset(
    {
        "amount_too_large",
        "amount_too_small",
        "balance_insufficient",
        "charge_already_refunded",
        "charge_disputed",
        "charge_exceeds_source_limit",
        "insufficient_funds",
        "payment_intent_unexpected_state",
        "payouts_not_allowed",
        "refund_disputed_payment",
    }
)
_AUTHENTICATION = frozenset({"authentication_required", "payment_intent_action_required"})


@contextmanager
def translated() -> Generator[None, None, None]:
    """Turn the refusals of Stripe that are raised here into endings of the call; let every other error out.

    Raises:
        CallRejected: a business "no".
        CallFailed: a "no" to us.
        AccountRefused: a "no" to whatever we send.
    """
    try:
        yield
    except stripe.CardError as error:
        raise declined(_body(error)) from None
    except stripe.InvalidRequestError as error:
        raise _refused(error) from None
    except stripe.AuthenticationError as error:
        raise AccountRefused(
            f"The gateway refuses our credentials ({error.http_status}).",
            code="gateway-unavailable",
        ) from None
    except stripe.PermissionError as error:
        raise _misconfigured(error) from None
    except stripe.APIError as error:
        # The official client leaves the code out where it has no class of its own for an error.
        error.code = error.code or _body(error).get("code")
        raise


def declined(error: Mapping[str, Any]) -> CallRejected:
    """Return the "no" that an error object in Stripe's form means, a decline or an intent's last error."""
    code, reason = str(error.get("code") or ""), str(error.get("decline_code") or "")
    intent = error.get("payment_intent")
    reference = str(intent.get("id", "")) if isinstance(intent, Mapping) else ""
    return CallRejected(
        # Stripe writes this text for customers.
        str(error.get("message") or "The payment was declined."),
        code=code_of(code=code, reason=reason),
        reference=reference,
        record=_record(id=reference, charge=error.get("charge"), code=code, decline_code=reason),
    )


def code_of(*, code: str, reason: str = "") -> str:
    """Return the code that the port gives: the more exact of two, as a column can hold it."""
    if _AUTHENTICATION & {code, reason}:
        return ACTION_REQUIRED
    return _NO_CODE.sub("", reason or code) or "declined"


_NO_CODE = re.compile("[^!-~]")


def _refused(error: stripe.InvalidRequestError) -> CallRejected | CallFailed:
    code, param = str(error.code or ""), str(error.param or "")
    if code not in _STATES and param.partition("[")[0] not in _CALLERS:
        return _misconfigured(error)
    about = f" `{param}`" if param else ""
    return CallRejected(
        f"The gateway refused{about}: {code or 'invalid'}.",
        code=code_of(code=code) if code else "invalid_request",
        record=_record(code=code, param=param),
    )


def _misconfigured(error: stripe.StripeError) -> CallFailed:
    why = ", ".join(
        str(part) for part in (error.http_status, error.code, getattr(error, "param", "")) if part
    )
    return CallFailed(
        f"The gateway refuses our account or our way of asking ({why}).",
        code="gateway-unavailable",
        sent=True,
    )


def _body(error: stripe.StripeError) -> Mapping[str, Any]:
    body = error.json_body
    inner = body.get("error") if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _record(**members: object) -> dict[str, Any]:
    return {name: value for name, value in members.items() if isinstance(value, str) and value}
