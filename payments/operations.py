"""Deferred work: what a worker runs when the row is due. Each handler is one call into the services."""

from typing import Any

from idempotency.ledger import Claim
from idempotency.operations import NotNow, message_handler, operation, recurring
from payments import services
from payments.conf import conf
from payments.gateway import Unreadable, read_kept_event, refusal
from payments.serializers import PayoutOut, ReceiptOut, RefundOut

REFUND = "payments.refund"
PAYOUT = "payouts.create"
RECEIPT = "receipts.create"
EVENTS = "stripe"
"""The source of the gateway's events in the inbox."""
FOLLOW_UP = recurring(
    "follow-up",
    every=lambda: conf.FOLLOW_EVERY,
    purpose="asks the gateway about what it had not decided yet",
    setting="FOLLOW_EVERY",
)


@operation(REFUND, refusal=refusal)
def refund(*, claim: Claim, input: Any) -> Any:  # noqa: A002 - the handler's contract; the key finds the row
    """Give money back."""
    return RefundOut(services.send_refund(claim=claim)).data


@operation(PAYOUT, refusal=refusal)
def payout(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Pay out."""
    return PayoutOut(services.send_payout(claim=claim)).data


@operation(RECEIPT)
def receipt(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Issue a receipt."""
    return ReceiptOut(services.issue_receipt(claim=claim)).data


@message_handler(EVENTS)
def event_again(*, message: bytes) -> None:
    """Take in an event that was taken in before: what it tells is written unless it is written already."""
    event = read_kept_event(message)
    if isinstance(event, Unreadable):
        raise NotNow("The message still cannot be read.")
    if event is not None:
        services.take_in(event)
