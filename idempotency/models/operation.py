"""Deferred work: its input, its attempts and its result. Its state and its due date are its key's."""

from django.db import models
from django.db.models import F, Q

from idempotency.models.fields import ClockTimestamp, uuid7
from idempotency.models.key import Key


class Operation(models.Model):
    """What a 202 promised."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    key = models.OneToOneField(Key, on_delete=models.CASCADE, related_name="work")
    name = models.CharField(max_length=100)
    input = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=ClockTimestamp())
    updated_at = models.DateTimeField(db_default=ClockTimestamp())

    # R33: begun, saved state and final error are three separate facts.
    attempts = models.PositiveIntegerField(default=0)
    cycle_attempts = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField()
    last_error = models.CharField(max_length=500, default="")
    result = models.JSONField(null=True)
    error = models.JSONField(null=True)

    class Meta:
        permissions = [
            ("retry_operation", "Can start a new cycle of attempts"),
            ("cancel_operation", "Can cancel a waiting operation"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(result__isnull=True) | Q(error__isnull=True),
                name="idempotency_operation_one_ending",
            ),
            models.CheckConstraint(
                condition=Q(cycle_attempts__lte=F("max_attempts"))
                & Q(cycle_attempts__lte=F("attempts")),
                name="idempotency_operation_attempts_bounded",
            ),
        ]
        indexes = [
            models.Index(
                F("id"), condition=Q(error__isnull=False), name="idempotency_operation_failed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {str(self.id)[:13]}"
