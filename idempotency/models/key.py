"""One row per idempotency key: who owns it, how it stands, what was answered."""

from django.db import models
from django.db.models import F, Q

from idempotency.models.fields import ClockTimestamp, LastPart, uuid7
from idempotency.types import State

_IN_PROGRESS = Q(state=State.IN_PROGRESS)
_LEASED = Q(lease_until__isnull=False, due_at__isnull=True)
_WAITING = Q(lease_until__isnull=True, due_at__isnull=False)
_ANSWERED = Q(status__isnull=False, content_type__isnull=False)


class Key(models.Model):
    """A key in one of its lives (`generation`).

    Constraints say what each state means; no code path, and no hand in psql, can leave a row outside them.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)

    # Identity (R6).
    scope = models.CharField(max_length=200)
    operation = models.CharField(max_length=100)
    key = models.CharField(max_length=255)
    generation = models.PositiveIntegerField(default=1)

    # What was asked (R7), and how its answer is to be rendered.
    fingerprint = models.BinaryField(max_length=32)
    fingerprint_parts = models.BinaryField(default=b"")
    fingerprint_version = models.PositiveSmallIntegerField()
    fingerprint_secret = models.CharField(max_length=32)
    accepted = models.CharField(max_length=100, default="")
    request_id = models.CharField(max_length=100, default="")
    traceparent = models.CharField(max_length=55, default="")

    # How it stands, and who may write (R11, R12).
    state = models.CharField(max_length=11, default=State.IN_PROGRESS)
    token = models.BigIntegerField(default=1)
    lease_until = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    deferred = models.BooleanField(default=False)
    call_begun = models.BooleanField(default=False)
    journal_version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=ClockTimestamp())
    claimed_at = models.DateTimeField(db_default=ClockTimestamp())

    # The answer (R15–R17). A deferred key stores its 202 from the start.
    status = models.PositiveSmallIntegerField(null=True)
    body = models.BinaryField(null=True)
    content_type = models.CharField(max_length=100, null=True)
    headers = models.JSONField(default=dict)
    note = models.CharField(max_length=20, default="")

    # The settlement (R37).
    settled_at = models.DateTimeField(null=True)
    settled_by = models.CharField(max_length=150, default="")
    evidence = models.JSONField(default=dict)

    # What nobody knows yet (R36, R38).
    unknown_since = models.DateTimeField(null=True)
    unfinished = models.BooleanField(default=False)
    watched = models.BooleanField(default=False)
    next_lookup_at = models.DateTimeField(null=True)
    lookups = models.PositiveIntegerField(default=0)
    needs_person_since = models.DateTimeField(null=True)
    needs_person_reason = models.CharField(max_length=200, default="")

    # For people.
    resource = models.CharField(max_length=200, default="")
    reference = models.CharField(max_length=200, default="")
    summary = models.CharField(max_length=200, default="")

    class Meta:
        verbose_name = "idempotency key"
        permissions = [
            ("view_payload", "Can see stored answers and payloads"),
            ("lookup_key", "Can ask the gateway now"),
            ("settle_key", "Can settle a key by hand"),
            ("rerun_message", "Can run a received message again"),
            ("export_keys", "Can export keys"),
            ("control_breaker", "Can force a circuit breaker"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["key", "scope", "operation"], name="idempotency_key_identity"
            ),
            models.CheckConstraint(
                condition=Q(state__in=list(State)), name="idempotency_key_state_known"
            ),
            models.CheckConstraint(
                condition=_IN_PROGRESS & (_LEASED | _WAITING)
                | ~_IN_PROGRESS & Q(lease_until__isnull=True, due_at__isnull=True),
                name="idempotency_key_in_progress_is_leased_or_due",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.COMPLETED) | _ANSWERED,
                name="idempotency_key_completed_has_an_answer",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[State.COMPLETED, State.RELEASED], settled_at__isnull=False)
                | Q(state__in=[State.IN_PROGRESS, State.UNKNOWN], settled_at__isnull=True),
                name="idempotency_key_settled_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(state=State.UNKNOWN, unknown_since__isnull=False)
                | ~Q(state=State.UNKNOWN) & Q(unknown_since__isnull=True, unfinished=False),
                name="idempotency_key_unknown_has_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.RELEASED) | Q(call_begun=True, deferred=False),
                name="idempotency_key_released_had_a_call",
            ),
            models.CheckConstraint(
                condition=Q(status__isnull=True, body__isnull=True)
                | Q(status__range=(200, 599)) & (Q(body__isnull=False) | ~Q(note="")),
                name="idempotency_key_answer_is_whole",
            ),
        ]
        indexes = [
            # A local handler's row enters none of these but the last: only what somebody must come back to is indexed.
            models.Index(
                F("lease_until"),
                condition=_IN_PROGRESS
                & Q(lease_until__isnull=False)
                & (Q(call_begun=True) | Q(deferred=True)),
                name="idempotency_key_leased",
            ),
            models.Index(
                F("due_at"), condition=Q(due_at__isnull=False), name="idempotency_key_due"
            ),
            models.Index(
                F("next_lookup_at"),
                condition=Q(next_lookup_at__isnull=False),
                name="idempotency_key_lookup",
            ),
            models.Index(
                F("unknown_since"),
                condition=Q(unknown_since__isnull=False),
                name="idempotency_key_unknown",
            ),
            models.Index(
                F("needs_person_since"),
                condition=Q(needs_person_since__isnull=False),
                name="idempotency_key_needs_person",
            ),
            models.Index(F("reference"), condition=~Q(reference=""), name="idempotency_key_by_ref"),
            models.Index(
                F("request_id"), condition=~Q(request_id=""), name="idempotency_key_by_request"
            ),
            models.Index(
                LastPart("resource"), condition=~Q(resource=""), name="idempotency_key_by_resource"
            ),
            # Rare among millions: without it a list of these would walk over all the others.
            models.Index(
                F("id"), condition=Q(state=State.RELEASED), name="idempotency_key_released"
            ),
            models.Index(
                F("settled_at"),
                condition=Q(settled_at__isnull=False),
                name="idempotency_key_settled",
            ),
            # The purge of answers must not walk over the rows whose answers are gone already.
            models.Index(
                F("settled_at"),
                condition=Q(settled_at__isnull=False, body__isnull=False),
                name="idempotency_key_answered",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {str(self.id)[:13]}"
