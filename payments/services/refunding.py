"""Giving money back: promised at once, done later, and never more than was taken (R42)."""

from dataclasses import dataclass

from django.db.models.functions import Now

from idempotency.exceptions import CallRejected
from idempotency.ledger import Claim
from payments.exceptions import RefundRefused
from payments.gateway import Movement, Progress, RefundRequest, gateway
from payments.models import Payment, Refund
from payments.money import shown
from payments.services.constraints import verdicts
from payments.services.differing import compare

REFUND = "refund"
"""The name of the one step of a refund."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundOrder:
    """How much of a payment is to be given back, and why."""

    amount: int
    reason: str = ""


def request_refund(*, payment: Payment, order: RefundOrder, claim: Claim) -> Refund:
    """Write the refund down, which reserves its amount of the payment from now on.

    Raises:
        NotRefundable: the payment has not succeeded.
        RefundTooLarge: less is left, counting refunds that are under way or may have happened.
    """
    # First, so that a refusal is found by the order too.
    claim.link(
        resource=f"{payment.get_absolute_url()}refunds/",
        reference=payment.order_id,
        summary=f"Refund of {shown(order.amount, payment.currency)} for order {payment.order_id}",
    )
    with verdicts():
        refund, _ = Refund.objects.made_once(
            claim=claim, payment=payment, amount=order.amount, reason=order.reason
        )
    return refund


def send_refund(*, claim: Claim) -> Refund:
    """Give back what was promised under this key, once.

    Raises:
        RefundRefused: the gateway refused; nothing was given back.
        RefundTooLarge: it had been given up, and meanwhile other refunds have taken what was left.
        CallFailed: certainly nothing was given back.
        CallUnknown: the gateway may have given it back.
    """
    refund = Refund.objects.under(claim).select_related("payment").get()
    if refund.status in ("succeeded", "processing"):
        # An event was here first: it is done.
        return refund
    with verdicts():
        refund.move("pending")
    through = gateway()
    try:
        result = claim.outside_call(
            step=REFUND,
            subject=f"refund {refund.pk}",
            request=through.refund_request(_request(refund)),
            send=through.refund,
            downstream=through.downstream,
        )
    except CallRejected as rejected:
        raise RefundRefused.of(rejected) from rejected
    return record_refund(refund=refund, movement=Movement.of(result.record))


def end_refund(*, claim: Claim, error: BaseException | None) -> None:
    """End the refund of a key that is settled without success: its amount is free again."""
    refund = Refund.objects.under(claim).first()
    if refund is None:
        return
    if isinstance(error, RefundRefused):
        refund.move("refused", refusal=error.reason[:60], settled_at=Now())
    else:
        refund.move("abandoned")


def record_refund(*, refund: Refund, movement: Movement) -> Refund:
    """Write down what the gateway has taken on; a refund that has gone further by now stays there (R41)."""
    compare(refund, movement)
    if movement.status is Progress.SUCCEEDED:
        refund.move("succeeded", gateway_reference=movement.id, settled_at=Now())
    else:
        refund.move("processing", gateway_reference=movement.id)
    return refund


def _request(refund: Refund) -> RefundRequest:
    return RefundRequest(
        amount=refund.amount,
        charge=refund.payment.gateway_reference or "",
        reason=refund.reason,
        reference=str(refund.pk),
    )
