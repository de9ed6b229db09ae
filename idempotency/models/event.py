"""What happened to a key beyond its ordinary life, in order; only ever appended to."""

from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KT

from idempotency.models.fields import ClockTimestamp


class Event(models.Model):
    """One line of a key's history. It outlives the key: news about a purged key is kept too (R39)."""

    id = models.BigAutoField(primary_key=True)
    key_id = models.UUIDField(null=True)
    at = models.DateTimeField(db_default=ClockTimestamp())
    kind = models.CharField(max_length=40)
    actor = models.CharField(max_length=150)
    reason = models.TextField(default="")
    detail = models.JSONField(default=dict)
    alarming = models.BooleanField(default=False)

    class Meta:
        permissions = [("handle_event", "Can mark an alarm as handled")]
        constraints = [
            # A form of the console acts once, however often it is sent: its key is made when it is rendered.
            models.UniqueConstraint(
                KT("detail__form"),
                condition=Q(detail__has_key="form"),
                name="idempotency_event_form_once",
            ),
            # An alarm is seen to once, whoever presses the button at the same time.
            models.UniqueConstraint(
                KT("detail__handles"),
                condition=Q(detail__has_key="handles"),
                name="idempotency_event_handled_once",
            ),
        ]
        indexes = [
            models.Index(F("key_id"), F("id"), name="idempotency_event_by_key"),
            models.Index(F("at"), condition=Q(alarming=True), name="idempotency_event_alarming"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.actor}"
