"""When each recurring task last succeeded: a beat that is silent is seen, not assumed."""

from django.db import models

from idempotency.models.fields import ClockTimestamp


class Heartbeat(models.Model):
    """One row per recurring task."""

    name = models.CharField(max_length=50, primary_key=True)
    last_ok_at = models.DateTimeField(db_default=ClockTimestamp())
    detail = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "overview"

    def __str__(self) -> str:
        return self.name
