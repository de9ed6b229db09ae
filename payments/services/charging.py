"""Charging a customer once: now, or later by what the gateway says then."""

from dataclasses import dataclass

from django.db.models.functions import Now

from idempotency.exceptions import CallRejected
from idempotency.ledger import Claim
from idempotency.types import Applied, LookUp, Rejected
from payments.conf import conf
from payments.exceptions import ActionRequired, OrderOpen, PaymentDeclined, Verdict
from payments.gateway import ACTION_REQUIRED, ChargeRequest, Movement, Progress, gateway
from payments.models import Merchant, Payment
from payments.money import shown
from payments.services.constraints import verdicts
from payments.services.differing import compare

CHARGE = "charge"
"""The name of the one step of a payment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentOrder:
    """What a merchant wants to charge, and for what."""

    order_id: str
    amount: int
    currency: str
    source: str
    description: str = ""


def create_payment(*, merchant: Merchant, order: PaymentOrder, claim: Claim) -> Payment:
    """Charge the customer once.

    Returns: the payment, succeeded or processing.

    Raises:
        PaymentDeclined, ActionRequired: the gateway refused; nothing was charged.
        OrderOpen: another payment of the order is open, and that is not allowed here.
        CallFailed: certainly nothing was charged; the same key may be tried again.
        CallUnknown: the gateway may have charged; the key waits for reconciliation.
    """
    payment = _begin(merchant, order, claim)
    if payment.status in ("succeeded", "processing"):
        # An event about an earlier run under this key was here first: the charge exists.
        return payment
    through = gateway()
    try:
        result = claim.outside_call(
            step=CHARGE,
            subject=f"payment {payment.pk}",
            request=through.charge_request(_request(payment)),
            send=through.charge,
            downstream=through.downstream,
        )
    except CallRejected as rejected:
        raise _verdict(rejected.code, rejected.reference) from rejected
    return record_charge(payment=payment, charge=Movement.of(result.record))


def finish_payment(*, claim: Claim, ending: LookUp) -> Payment:
    """Do what `create_payment` would have done after its call, by what a look-up says of it.

    Raises:
        PaymentDeclined, ActionRequired: the gateway had refused.
        ValueError: the look-up says neither yes nor no.
    """
    payment = Payment.objects.under(claim).get()
    match ending:
        case Applied(result=result):
            return record_charge(payment=payment, charge=Movement.of(result.record))
        case Rejected(code=code, result=result):
            raise _verdict(code, result.reference)
        case _:
            raise ValueError(f"A payment cannot be finished on {ending}.")


def end_payment(*, claim: Claim, error: BaseException | None) -> None:
    """End the payment of a key that is settled without success: refused, or certainly not made."""
    payment = Payment.objects.under(claim).first()
    if payment is None:
        return
    if isinstance(error, Verdict):
        payment.move(
            refusal_status(error.reason),
            decline_reason=error.reason[:60],
            gateway_reference=payment.gateway_reference or error.gateway_reference or None,
            settled_at=Now(),
        )
    else:
        payment.move("not_charged")


def record_charge(*, payment: Payment, charge: Movement) -> Payment:
    """Write down what the gateway has taken on; a payment that has gone further by now stays there (R41)."""
    compare(payment, charge)
    if charge.status is Progress.SUCCEEDED:
        payment.move("succeeded", gateway_reference=charge.id, settled_at=Now())
    else:
        payment.move("processing", gateway_reference=charge.id)
    return payment


def _begin(merchant: Merchant, order: PaymentOrder, claim: Claim) -> Payment:
    # First, so that a refusal is found by the order too.
    claim.link(
        reference=order.order_id,
        summary=f"Charge of {shown(order.amount, order.currency)} for order {order.order_id}",
    )
    try:
        payment, new = Payment.objects.made_once(
            claim=claim,
            merchant=merchant,
            order_id=order.order_id,
            amount=order.amount,
            currency=order.currency,
            source=order.source,
            description=order.description,
            guards_order=conf.ONE_OPEN_PAYMENT_PER_ORDER,
        )
    except Payment.DoesNotExist as refused:
        raise OrderOpen from refused
    if not new:
        with verdicts():
            payment.move("pending")
    claim.link(resource=payment.get_absolute_url())
    return payment


def _request(payment: Payment) -> ChargeRequest:
    return ChargeRequest(
        amount=payment.amount,
        currency=payment.currency,
        source=payment.source,
        description=payment.description,
        order_id=payment.order_id,
        reference=str(payment.pk),
    )


def refusal_status(code: str) -> str:
    """Return the status of a payment that was refused with this code."""
    return "action_required" if code == ACTION_REQUIRED else "declined"


def _verdict(code: str, reference: str) -> Verdict:
    kind = ActionRequired if code == ACTION_REQUIRED else PaymentDeclined
    return kind(reason=code, gateway_reference=reference)
