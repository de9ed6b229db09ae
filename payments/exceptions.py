"""The verdicts of the payments application: DRF exceptions with published codes, and nothing of the request in them.

A body that carries nothing of the request is the same whoever renders it: the view, or the reconciler days later.
"""

from collections.abc import Mapping
from typing import Any, Self

from rest_framework.exceptions import APIException, ValidationError

from idempotency.exceptions import CallRejected


class Verdict(APIException):
    """A final answer about the business: it is stored under the key and replayed.

    Attributes:
        reason: the other side's code, for our own rows; never shown with the problem.
        gateway_reference: the other side's id of the refused try, or "".
    """

    def __init__(self, *, reason: str = "", gateway_reference: str = "") -> None:
        super().__init__()
        self.reason = reason
        self.gateway_reference = gateway_reference

    @classmethod
    def of(cls, rejected: CallRejected) -> Self:
        """Return the verdict that the other side's refusal means."""
        return cls(reason=rejected.code, gateway_reference=rejected.reference)


class AccountUnknown(ValidationError):
    """A field names no account of the merchant."""

    def __init__(self, field: str) -> None:
        super().__init__({field: ["There is no such account of yours."]})


class PaymentUnknown(ValidationError):
    """A field names no payment of the merchant."""

    def __init__(self) -> None:
        super().__init__({"payment": ["There is no such payment of yours."]})


class CurrenciesDiffer(ValidationError):
    """Two accounts hold different currencies."""

    def __init__(self) -> None:
        super().__init__({"to_account": ["Both accounts must hold the same currency."]})


class PaymentDeclined(Verdict):
    """The gateway refused the charge; nothing was taken."""

    status_code = 402
    default_code = "payment-declined"
    default_detail = "The payment was declined. Nothing was charged."


class ActionRequired(Verdict):
    """The customer would have to act, and is not here; nothing was taken."""

    status_code = 402
    default_code = "action-required"
    default_detail = "The customer has to confirm this payment. Nothing was charged."


class OrderOpen(Verdict):
    """Another payment of the same order is open; nothing was taken."""

    status_code = 409
    default_code = "order-open"
    default_detail = "Another payment of this order is not settled yet. Nothing was charged."


class InsufficientFunds(Verdict):
    """The account holds less than is to be moved; nothing was moved."""

    status_code = 409
    default_code = "insufficient-funds"
    default_detail = "The account holds too little money. Nothing was moved."


class NotRefundable(Verdict):
    """The payment has not succeeded, so there is nothing to give back."""

    status_code = 409
    default_code = "not-refundable"
    default_detail = "Only a payment that has succeeded can be refunded."


class RefundTooLarge(Verdict):
    """Less is left of the payment than is to be given back, counting refunds that are under way (R42)."""

    status_code = 409
    default_code = "refund-too-large"
    default_detail = "Less is left of the payment than is to be refunded."


class RefundRefused(Verdict):
    """The gateway refused the refund; nothing was given back."""

    status_code = 402
    default_code = "refund-refused"
    default_detail = "The refund was refused. Nothing was given back."


class PayoutRefused(Verdict):
    """The gateway refused the payout; nothing was paid."""

    status_code = 402
    default_code = "payout-refused"
    default_detail = "The payout was refused. Nothing was paid."


class Undeliverable(Verdict):
    """A webhook is not delivered any more; `reason` says why."""

    status_code = 409
    default_code = "undeliverable"
    default_detail = "The event is not delivered any more."


class DeliveryWaiting(Verdict):
    """An event is still on its way, so there is nothing to send again."""

    status_code = 409
    default_code = "delivery-waiting"
    default_detail = "The event is still on its way: it is tried until it arrives or is given up."


class EndpointDisabled(Verdict):
    """Nothing is sent to an endpoint that is switched off."""

    status_code = 409
    default_code = "endpoint-disabled"
    default_detail = "The endpoint is disabled, so nothing is sent to it."


class SignatureInvalid(APIException):
    """An event is not signed by the gateway, or its signature is too old."""

    status_code = 400
    default_code = "signature-invalid"
    default_detail = "The signature does not match this body, or is too old."


class EventBusy(APIException):
    """Another copy of the event is being worked on; the sender repeats it."""

    status_code = 503
    default_code = "event-busy"
    default_detail = "Another copy of this event is being worked on."
    wait = 5


def _problem(
    verdict: type[APIException], title: str, when: str, client: str, *, retryable: bool = False
) -> Mapping[str, Mapping[str, Any]]:
    fields = {
        "status": verdict.status_code,
        "title": title,
        "when": when,
        "client": client,
        "retryable": retryable,
        "safe_new_key": True,
    }
    return {str(verdict.default_code): fields}


_NEW_OPERATION = "Correct what was refused and send it as a new operation, with a new key."

PROBLEMS: Mapping[str, Mapping[str, Any]] = {
    **_problem(
        PaymentDeclined,
        "The payment was declined",
        "The customer's bank or the gateway refused the charge. Nothing was charged.",
        "Ask the customer for another means of payment and send a new payment, with a new key.",
    ),
    **_problem(
        ActionRequired,
        "The customer has to confirm the payment",
        "The bank wants to hear from the customer, e.g. by 3-D Secure. Nothing was charged.",
        "Let the customer choose another means of payment and send a new payment, with a new key.",
    ),
    **_problem(
        OrderOpen,
        "Another payment of the order is open",
        "A payment of the same order is under way, or nobody knows yet whether it happened.",
        "Read the order's payments; pay again, with a new key, once none of them is open.",
    ),
    **_problem(
        InsufficientFunds,
        "The account holds too little money",
        "A transfer or a payout is larger than the balance of the account. Nothing was moved.",
        "Send a smaller one, or the same once there is money, as a new operation with a new key.",
    ),
    **_problem(
        NotRefundable,
        "The payment cannot be refunded",
        "The payment has not succeeded, or not yet.",
        "Read the payment; refund it once it has succeeded, with a new key.",
    ),
    **_problem(
        RefundTooLarge,
        "The refund is larger than what is left of the payment",
        "What was refunded, with what is being refunded or may have been, leaves less than this.",
        "Read the payment's refunds and send a smaller one, with a new key.",
    ),
    **_problem(
        RefundRefused,
        "The refund was refused",
        "The gateway refused to give the money back. Nothing was given back.",
        _NEW_OPERATION,
    ),
    **_problem(
        PayoutRefused,
        "The payout was refused",
        "The gateway refused to pay the account, e.g. because it does not exist. Nothing was paid.",
        _NEW_OPERATION,
    ),
    **_problem(
        DeliveryWaiting,
        "The event is still on its way",
        "An event is to be sent again that has neither arrived nor been given up.",
        "Read the delivery; once it has ended it can be sent again, with a new key.",
    ),
    **_problem(
        EndpointDisabled,
        "The endpoint is disabled",
        "An event is to be sent again to an endpoint that is switched off.",
        "Switch the endpoint on, then ask again, with a new key.",
    ),
    **_problem(
        SignatureInvalid,
        "The event is not signed by the gateway",
        "The signature is missing, does not match the body, or is older than is accepted.",
        "Only the gateway sends events; check the shared secret and both clocks.",
    ),
    **_problem(
        EventBusy,
        "The event is being worked on",
        "Another copy of the same event arrived at the same time and is not done yet.",
        "Send the event again after Retry-After.",
        retryable=True,
    ),
}
