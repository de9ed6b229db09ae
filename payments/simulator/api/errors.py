"""Stripe's errors. Source: Stripe's API reference, "Errors", and its list of error codes."""

from __future__ import annotations

from typing import Literal

from payments.simulator.wire.http import Answer, Json, json_answer

ErrorType = Literal["api_error", "card_error", "idempotency_error", "invalid_request_error"]


class ApiError(Exception):
    """A refusal in Stripe's form.

    `remembered` tells whether the endpoint had begun, so that the refusal stays under its key.
    `should_retry` becomes the header Stripe-Should-Retry, where Stripe sends one.
    """

    def __init__(
        self,
        status: int,
        error_type: ErrorType,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        remembered: bool = False,
        should_retry: bool | None = None,
        details: Json | None = None,
    ) -> None:
        """Describe a refusal; `details` are further members of the error object."""
        super().__init__(message)
        self.remembered = remembered
        error: Json = {"message": message, "type": error_type}
        if code is not None:
            error["code"] = code
            error["doc_url"] = f"https://stripe.com/docs/error-codes/{code.replace('_', '-')}"
        if param is not None:
            error["param"] = param
        error.update(details or {})
        answer = json_answer(status, {"error": error})
        if should_retry is not None:
            answer = answer.adding(("Stripe-Should-Retry", str(should_retry).lower()))
        self.answer: Answer = answer


# Before the endpoint begins: nothing is remembered.


def unauthorized(message: str) -> ApiError:
    """Return the refusal of a missing or unknown API key."""
    return ApiError(401, "invalid_request_error", message)


def no_such_route(method: str, path: str) -> ApiError:
    """Return the refusal of a path that is not served here."""
    return ApiError(404, "invalid_request_error", f"Unrecognized request URL ({method}: {path}).")


def invalid_parameter(message: str, *, param: str | None, code: str | None = None) -> ApiError:
    """Return the refusal of a parameter that cannot be used, whatever the state of things."""
    return ApiError(400, "invalid_request_error", message, param=param, code=code)


def key_reused() -> ApiError:
    """Return the refusal of a key that comes with other parameters."""
    return ApiError(
        400,
        "idempotency_error",
        "Keys for idempotent requests can only be used with the same parameters and path they"
        " were first used with. Try using a different key if you meant another request.",
        should_retry=False,
    )


def key_in_use() -> ApiError:
    """Return the refusal of a key whose first request is still under way."""
    return ApiError(
        409,
        "idempotency_error",
        "There is currently another in-progress request using this idempotency key. Try again"
        " later.",
        code="idempotency_key_in_use",
        should_retry=True,
    )


# The endpoint has begun: remembered under the key.


def refused(
    message: str, *, code: str | None = None, param: str | None = None, details: Json | None = None
) -> ApiError:
    """Return a refusal by the state of things: it would have been accepted in another state."""
    return ApiError(
        400, "invalid_request_error", message,
        code=code, param=param, remembered=True, details=details,
    )  # fmt: skip


def no_such_object(kind: str, object_id: str, *, param: str, status: int = 400) -> ApiError:
    """Return the refusal of an id that names nothing: 404 when it is the resource itself."""
    return ApiError(
        status, "invalid_request_error", f"No such {kind}: '{object_id}'",
        code="resource_missing", param=param, remembered=True,
    )  # fmt: skip


def card_refused(
    message: str, *, code: str, decline_code: str | None, charge: str | None, intent: Json
) -> ApiError:
    """Return a decline, which carries the intent as it now stands."""
    details: Json = {"payment_intent": intent}
    if charge is not None:
        details["charge"] = charge
    if decline_code is not None:
        details["decline_code"] = decline_code
    return ApiError(402, "card_error", message, code=code, remembered=True, details=details)


# What the gateway says of itself.


def rate_limited() -> ApiError:
    """Return "too many requests": this one was not executed."""
    return ApiError(
        429,
        "invalid_request_error",
        "Request rate limit exceeded. Learn more about rate limits at"
        " https://stripe.com/docs/rate-limits.",
        code="rate_limit",
        should_retry=True,
    )


def unavailable() -> ApiError:
    """Return "out of service": this request was not executed."""
    return ApiError(
        503, "api_error", "The gateway takes no requests now; this one was not executed.",
        should_retry=True,
    )  # fmt: skip


def broke_down() -> ApiError:
    """Return the 500 of an unforeseen error."""
    return ApiError(500, "api_error", "An unknown error occurred.")


def account_not_enabled() -> ApiError:
    """Return a refusal that goes on after its cause is repaired: it is remembered."""
    return refused("Your account cannot currently make live charges.", code="account_invalid")
