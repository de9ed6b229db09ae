"""Payouts to accounts outside."""

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


class Payout(MadeUnderKey, Moving):
    """Money paid out, in two calls: the recipient is made known first, then paid."""

    PATHS: ClassVar[dict[str, tuple[str, ...]]] = {
        "pending": ("abandoned",),
        "processing": ("pending", "abandoned"),
        "succeeded": ("pending", "processing", "refused", "abandoned"),
        "refused": ("pending", "processing"),
        "abandoned": ("pending",),
    }

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="payouts")
    amount = amount_field()
    currency = models.CharField(max_length=3)
    destination = models.CharField(max_length=80)
    recipient_reference = models.CharField(max_length=100, default="")
    refusal = models.CharField(max_length=60, default="")
    gateway_reference = models.CharField(max_length=100, null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta(MadeUnderKey.Meta):
        constraints = [
            *MadeUnderKey.Meta.constraints,
            amount_is_positive(),
            currency_is_known(),
            status_is_known(["pending", "processing", "succeeded", "refused", "abandoned"]),
            models.UniqueConstraint(
                fields=["gateway_reference"], name="payments_payout_one_movement"
            ),
            models.CheckConstraint(
                condition=~Q(status="succeeded")
                | Q(gateway_reference__isnull=False, settled_at__isnull=False),
                name="payments_payout_succeeded_is_proven",
            ),
        ]
        indexes = [
            models.Index(F("merchant"), F("created_at").desc(), name="payments_payout_of"),
            models.Index(
                F("updated_at"), condition=Q(status="processing"), name="payments_payout_open"
            ),
        ]

    def __str__(self) -> str:
        return f"Payout of {shown(self.amount, self.currency)} to {self.destination}"

    def get_absolute_url(self) -> str:
        """Return its address in the API."""
        return reverse("payments:payout-detail", args=[self.pk])
