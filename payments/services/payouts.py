"""Paying out: two calls, each made once; a run that stopped between them goes on at the second."""

from dataclasses import dataclass

from django.db.models.functions import Now

from idempotency.exceptions import CallRejected
from idempotency.ledger import Claim
from payments.exceptions import PayoutRefused
from payments.gateway import (
    Movement,
    PayoutRequest,
    Progress,
    Recipient,
    RecipientRequest,
    gateway,
)
from payments.models import Merchant, Payout
from payments.money import shown
from payments.services.differing import compare

RECIPIENT = "recipient"
PAYOUT = "payout"
"""The names of the steps of a payout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutOrder:
    """How much is to be paid out, and where to."""

    amount: int
    currency: str
    destination: str


def request_payout(*, merchant: Merchant, order: PayoutOrder, claim: Claim) -> Payout:
    """Write the payout down."""
    payout, _ = Payout.objects.made_once(
        claim=claim,
        merchant=merchant,
        amount=order.amount,
        currency=order.currency,
        destination=order.destination,
    )
    claim.link(
        resource=payout.get_absolute_url(),
        reference=str(payout.pk),
        summary=f"Payout of {shown(payout.amount, payout.currency)} to {payout.destination}",
    )
    return payout


def send_payout(*, claim: Claim) -> Payout:
    """Make the recipient known, then pay; what an earlier run has done is not done again.

    Returns: the payout, also where the gateway refused it after it had taken the recipient: the work is over, though
    nothing was paid, and a verdict that is raised after an applied step would leave it unfinished (R14).

    Raises:
        PayoutRefused: the gateway knows no such account.
        CallFailed: certainly nothing was paid.
        CallUnknown: the gateway may have paid.
    """
    payout = Payout.objects.under(claim).get()
    if payout.status in ("succeeded", "processing"):
        # An event was here first: it is done.
        return payout
    payout.move("pending")
    try:
        recipient = _make_known(payout, claim)
    except CallRejected as rejected:
        raise PayoutRefused.of(rejected) from rejected
    try:
        paid = _pay(payout, recipient, claim)
    except CallRejected as rejected:
        payout.move("refused", refusal=rejected.code[:60], settled_at=Now())
        return payout
    return record_payout(payout=payout, movement=paid)


def end_payout(*, claim: Claim, error: BaseException | None) -> None:
    """End the payout of a key that is settled without success."""
    payout = Payout.objects.under(claim).first()
    if payout is None:
        return
    if isinstance(error, PayoutRefused):
        payout.move("refused", refusal=error.reason[:60], settled_at=Now())
    else:
        payout.move("abandoned")


def record_payout(*, payout: Payout, movement: Movement) -> Payout:
    """Write down what the gateway has taken on; a payout that has gone further by now stays there (R41)."""
    compare(payout, movement)
    if movement.status is Progress.SUCCEEDED:
        payout.move("succeeded", gateway_reference=movement.id, settled_at=Now())
    else:
        payout.move("processing", gateway_reference=movement.id)
    return payout


def _make_known(payout: Payout, claim: Claim) -> Recipient:
    through = gateway()
    result = claim.outside_call(
        step=RECIPIENT,
        subject=f"recipient of payout {payout.pk}",
        request=through.recipient_request(
            RecipientRequest(destination=payout.destination, reference=str(payout.pk))
        ),
        send=through.create_recipient,
        downstream=through.downstream,
    )
    recipient = Recipient.of(result.record)
    # An absolute write: whoever repeats it writes the same.
    Payout.objects.filter(pk=payout.pk).update(recipient_reference=recipient.id)
    return recipient


def _pay(payout: Payout, recipient: Recipient, claim: Claim) -> Movement:
    through = gateway()
    result = claim.outside_call(
        step=PAYOUT,
        subject=f"payout {payout.pk}",
        request=through.payout_request(
            PayoutRequest(
                amount=payout.amount,
                currency=payout.currency,
                recipient=recipient.id,
                reference=str(payout.pk),
            )
        ),
        send=through.pay,
        downstream=through.downstream,
    )
    return Movement.of(result.record)
