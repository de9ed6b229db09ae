"""Receipts: issued later, once per key; two requests without a key are two receipts."""

import uuid
from dataclasses import dataclass

from django.db import router
from django.db.models.functions import Now

from idempotency.ledger import Claim
from payments.exceptions import PaymentUnknown
from payments.models import Merchant, Payment, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptOrder:
    """What a merchant wants to tell a customer about a payment."""

    payment: uuid.UUID
    email: str
    text: str


def request_receipt(*, merchant: Merchant, order: ReceiptOrder, claim: Claim) -> Receipt:
    """Write the receipt down.

    Raises:
        PaymentUnknown: the merchant has no such payment.
    """
    payments = Payment.objects.using(router.db_for_write(Payment)).filter(merchant=merchant)
    payment = payments.filter(pk=order.payment).first()
    if payment is None:
        raise PaymentUnknown
    claim.require_key()
    receipt, _ = Receipt.objects.made_once(
        claim=claim, payment=payment, email=order.email, text=order.text
    )
    claim.link(
        resource=receipt.get_absolute_url(),
        reference=payment.order_id,
        summary=f"Receipt for order {payment.order_id}",
    )
    return receipt


def issue_receipt(*, claim: Claim) -> Receipt:
    """Issue what was promised under this key."""
    receipt = Receipt.objects.under(claim).get()
    receipt.move("issued", issued_at=Now())
    return receipt


def end_receipt(*, claim: Claim) -> None:
    """End the receipt of a key that is settled without success."""
    receipt = Receipt.objects.under(claim).first()
    if receipt is not None:
        receipt.move("abandoned")
