"""Charges at the gateway, and what is given back of them."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from payments.models.base import (
    MadeUnderKey,
    Moving,
    amount_field,
    amount_is_positive,
    currency_is_known,
    status_is_known,
)
from payments.models.merchant import Merchant
from payments.money import shown


class Payment(MadeUnderKey, Moving):
    """One charge of a customer.

        pending ──▶ processing ──▶ succeeded
          │  ▲          └────────▶ declined
          │  └─ not_charged (the key was released: the same key may try again)
          ├──▶ declined · action_required

    Whatever the row says, the gateway's word that the money was taken moves it to succeeded: what really happened is
    never contradicted, only raised as late news.
    """

    PATHS: ClassVar[dict[str, tuple[str, ...]]] = {
        "pending": ("not_charged",),
        "processing": ("pending", "not_charged"),
        "succeeded": ("pending", "processing", "not_charged", "declined", "action_required"),
        "declined": ("pending", "processing", "action_required"),
        "action_required": ("pending", "processing"),
        "not_charged": ("pending",),
    }

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="payments")
    order_id = models.CharField(max_length=64)
    amount = amount_field()
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=80)
    """The gateway's token, never a card number."""
    description = models.CharField(max_length=200, default="")
    guards_order = models.BooleanField(default=False, editable=False)
    """Whether no other payment of this order may be open beside it (R42)."""
    decline_reason = models.CharField(max_length=60, default="")
    gateway_reference = models.CharField(max_length=100, null=True)
    settled_at = models.DateTimeField(null=True)

    # Kept by a trigger on the refunds, never written here: see the migration.
    refunded_reserved = models.BigIntegerField(default=0, editable=False)
    refunded_amount = models.BigIntegerField(default=0, editable=False)

    class Meta(MadeUnderKey.Meta):
        constraints = [
            *MadeUnderKey.Meta.constraints,
            amount_is_positive(),
            currency_is_known(),
            status_is_known(
                ["pending", "processing", "succeeded", "declined", "action_required", "not_charged"]
            ),
            models.UniqueConstraint(
                fields=["gateway_reference"], name="payments_payment_one_charge"
            ),
            models.CheckConstraint(
                condition=~Q(status="succeeded")
                | Q(gateway_reference__isnull=False, settled_at__isnull=False),
                name="payments_payment_succeeded_is_proven",
            ),
            models.UniqueConstraint(
                fields=["merchant", "order_id"],
                condition=Q(guards_order=True, status__in=["pending", "processing"]),
                name="payments_payment_one_open_per_order",
            ),
            models.CheckConstraint(
                condition=~Q(status="processing") | Q(gateway_reference__isnull=False),
                name="payments_payment_processing_is_known",
            ),
            models.CheckConstraint(
                condition=Q(refunded_reserved__lte=F("amount"))
                & Q(refunded_amount__lte=F("refunded_reserved"))
                & Q(refunded_amount__gte=0),
                name="payments_payment_refunds_within_captured",
            ),
            models.CheckConstraint(
                condition=Q(refunded_reserved=0) | Q(status="succeeded"),
                name="payments_payment_refunded_was_captured",
            ),
        ]
        indexes = [
            models.Index(F("merchant"), F("created_at").desc(), name="payments_payment_of"),
            models.Index(F("order_id"), name="payments_payment_by_order"),
            models.Index(
                F("updated_at"), condition=Q(status="processing"), name="payments_payment_open"
            ),
        ]

    def __str__(self) -> str:
        return f"Charge of {shown(self.amount, self.currency)} for order {self.order_id}"

    def get_absolute_url(self) -> str:
        """Return its address in the API."""
        return reverse("payments:payment-detail", args=[self.pk])

    @property
    def left(self) -> int:
        """What can still be refunded, counting refunds under way and unknown ones as spent (R42)."""
        return int(self.amount - self.refunded_reserved) if self.status == "succeeded" else 0


class Refund(MadeUnderKey, Moving):
    """Money given back of one payment.

    A refund counts against its payment from the moment it exists until it is known not to have happened (R42).
    """

    PATHS: ClassVar[dict[str, tuple[str, ...]]] = {
        "pending": ("abandoned",),
        "processing": ("pending", "abandoned"),
        "succeeded": ("pending", "processing", "refused", "abandoned"),
        "refused": ("pending", "processing"),
        "abandoned": ("pending",),
    }

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    amount = amount_field()
    reason = models.CharField(max_length=200, default="")
    refusal = models.CharField(max_length=60, default="")
    gateway_reference = models.CharField(max_length=100, null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta(MadeUnderKey.Meta):
        constraints = [
            *MadeUnderKey.Meta.constraints,
            amount_is_positive(),
            status_is_known(["pending", "processing", "succeeded", "refused", "abandoned"]),
            models.UniqueConstraint(
                fields=["gateway_reference"], name="payments_refund_one_movement"
            ),
            models.CheckConstraint(
                condition=~Q(status="succeeded")
                | Q(gateway_reference__isnull=False, settled_at__isnull=False),
                name="payments_refund_succeeded_is_proven",
            ),
        ]
        indexes = [
            models.Index(
                F("updated_at"), condition=Q(status="processing"), name="payments_refund_open"
            )
        ]

    def __str__(self) -> str:
        return f"Refund of {shown(self.amount, self.payment.currency)}"
