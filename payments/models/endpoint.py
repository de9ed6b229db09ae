"""Where a merchant is told of what was settled: endpoints, the secrets they know us by, and what is delivered there."""

import uuid
from typing import Any, ClassVar

from django.db import models, router
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse

from payments.models.merchant import Merchant


class Written(models.Manager[Any]):
    """Reads where it is written, never from a replica: what was promised a moment ago is there."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Return all rows."""
        return super().get_queryset().using(router.db_for_write(self.model))


class Endpoint(models.Model):
    """An address of a merchant's own that is told of events.

    It is enabled or disabled (by the merchant, by staff, by its own 410, by days of failure), and deleted for good.
    """

    ENABLED, DISABLED, DELETED = "enabled", "disabled", "deleted"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="endpoints")
    url = models.CharField(max_length=500)
    description = models.CharField(max_length=200, default="")
    events = models.JSONField(default=list)
    """Names of the events that it is told of; empty: of all."""
    status = models.CharField(max_length=20, default=ENABLED)
    disabled_because = models.CharField(max_length=60, default="")
    failures = models.PositiveIntegerField(default=0, editable=False)
    """In a row."""
    failing_since = models.DateTimeField(null=True, editable=False)
    failed_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects: ClassVar[Written] = Written()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "url"],
                condition=~Q(status="deleted"),
                name="payments_endpoint_once_per_merchant",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["deleted", "disabled", "enabled"]),
                name="payments_endpoint_status_known",
            ),
        ]

    def __str__(self) -> str:
        # Without the query, in which merchants put tokens: this is shown to staff and put on record.
        path, asked, _ = self.url.partition("?")
        return f"{path}?…" if asked else path


class EndpointSecret(models.Model):
    """What deliveries to an endpoint are signed with; while a new one replaces it, both sign."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="secrets")
    sealed = models.BinaryField()
    """The secret as the ledger seals what it stores; it is shown once, when it is made."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True)

    objects: ClassVar[Written] = Written()

    def __str__(self) -> str:
        return f"Secret of {self.created_at:%Y-%m-%d %H:%M}"


class Delivery(models.Model):
    """One event on its way to one endpoint. Its id is the receiver's `webhook-id`, the same in every try."""

    WAITING, DELIVERED, FAILED = "waiting", "delivered", "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    subject_id = models.UUIDField()
    subject_version = models.PositiveIntegerField()
    body = models.BinaryField()
    """What is sent, byte for byte, as the ledger seals what it stores."""
    operation_id = models.UUIDField(null=True)
    """The deferred work that delivers it. Work is purged before deliveries are, so there is no foreign key."""
    status = models.CharField(max_length=20, default=WAITING)
    ending = models.CharField(max_length=60, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    queued_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True)

    objects: ClassVar[Written] = Written()

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "subject_id", "subject_version"],
                name="payments_delivery_once_per_change",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["delivered", "failed", "waiting"]),
                name="payments_delivery_status_known",
            ),
            models.CheckConstraint(
                condition=Q(status="waiting") | Q(ended_at__isnull=False),
                name="payments_delivery_ended_has_a_time",
            ),
        ]
        indexes = [
            models.Index(
                F("endpoint"), F("created_at").desc(), F("id").desc(), name="payments_delivery_of"
            ),
            models.Index(F("operation_id"), name="payments_delivery_by_work"),
            models.Index(
                F("ended_at"), condition=Q(ended_at__isnull=False), name="payments_delivery_over"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.endpoint}"

    def get_absolute_url(self) -> str:
        """Return where the API shows it to its merchant."""
        return reverse("payments:endpoint-delivery", args=[self.endpoint_id, self.webhook_id])

    @property
    def webhook_id(self) -> str:
        """What the receiver knows it by."""
        return f"msg_{self.pk.hex}"


class DeliveryAttempt(models.Model):
    """One try of a delivery, as it ended."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField(db_default=Now())
    status = models.PositiveSmallIntegerField(null=True)
    """Of the answer; None where there was none."""
    error = models.CharField(max_length=200, default="")
    milliseconds = models.PositiveIntegerField()

    objects: ClassVar[Written] = Written()

    class Meta:
        ordering = ["at", "pk"]

    def __str__(self) -> str:
        return str(self.status or self.error)
