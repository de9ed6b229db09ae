"""The journal: each outside call of a key, and each process that may have sent it (R22)."""

from django.db import models
from django.db.models import F, Q

from idempotency.models.fields import ClockTimestamp
from idempotency.models.key import Key
from idempotency.types import Ending


class Step(models.Model):
    """One outside call: its downstream key and the frozen bytes that every send repeats."""

    key = models.ForeignKey(Key, on_delete=models.CASCADE, related_name="steps", db_index=False)
    generation = models.PositiveIntegerField()
    name = models.CharField(max_length=50)
    rotation = models.PositiveIntegerField(default=0)
    downstream = models.CharField(max_length=50)
    downstream_key = models.CharField(max_length=64)
    payload = models.BinaryField()
    subject = models.CharField(max_length=100, default="")

    # What the other side had declared when the step began (R23, R36).
    keyed = models.BooleanField()
    settling_seconds = models.FloatField()
    first_send_at = models.DateTimeField(db_default=ClockTimestamp())
    resend_until = models.DateTimeField()

    # Evidence that it happened; never overwritten.
    applied_at = models.DateTimeField(null=True)
    reference = models.CharField(max_length=200, default="")
    result = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["key", "generation", "name", "rotation"], name="idempotency_step_identity"
            ),
            models.UniqueConstraint(fields=["downstream_key"], name="idempotency_step_downstream"),
            models.CheckConstraint(
                condition=Q(applied_at__isnull=True, result__isnull=True)
                | Q(applied_at__isnull=False, result__isnull=False),
                name="idempotency_step_applied_has_a_result",
            ),
        ]
        indexes = [
            models.Index(
                F("reference"), condition=~Q(reference=""), name="idempotency_step_by_reference"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} of {str(self.key_id)[:13]}"


class Sender(models.Model):
    """One claim that may send a step: open until `ending` is written. Endings are evidence, whoever holds the token."""

    step = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="senders", db_index=False)
    token = models.BigIntegerField()

    # Which process it is, so that its death can be proven.
    host = models.CharField(max_length=100)
    boot_id = models.CharField(max_length=36)
    pid_namespace = models.CharField(max_length=40)
    pid = models.IntegerField()
    process_started = models.CharField(max_length=30)
    begun_at = models.DateTimeField(db_default=ClockTimestamp())
    send_before = models.DateTimeField()
    dead_at = models.DateTimeField(null=True)

    ending = models.CharField(max_length=12, null=True)
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    evidence = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["step", "token"], name="idempotency_sender_identity"),
            models.CheckConstraint(
                condition=Q(ending__isnull=True, ended_at__isnull=True)
                | Q(ending__in=list(Ending), ended_at__isnull=False),
                name="idempotency_sender_ending_known",
            ),
        ]
        indexes = [
            models.Index(
                F("begun_at"), condition=Q(ending__isnull=True), name="idempotency_sender_open"
            )
        ]

    def __str__(self) -> str:
        return f"sender {self.token} of step {self.step_id}"
