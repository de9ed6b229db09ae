"""Receipts."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from payments.models.base import MadeUnderKey, Moving, status_is_known
from payments.models.payment import Payment


class Receipt(MadeUnderKey, Moving):
    """A text for the customer about one payment, issued once."""

    PATHS: ClassVar[dict[str, tuple[str, ...]]] = {
        "pending": ("abandoned",),
        "issued": ("pending", "abandoned"),
        "abandoned": ("pending",),
    }

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="receipts")
    email = models.EmailField()
    text = models.TextField(max_length=2000)
    issued_at = models.DateTimeField(null=True)

    class Meta(MadeUnderKey.Meta):
        constraints = [
            *MadeUnderKey.Meta.constraints,
            status_is_known(["pending", "issued", "abandoned"]),
            models.CheckConstraint(
                condition=~Q(status="issued") | Q(issued_at__isnull=False),
                name="payments_receipt_issued_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return f"Receipt to {self.email}"

    def get_absolute_url(self) -> str:
        """Return its address in the API."""
        return reverse("payments:receipt-detail", args=[self.pk])
