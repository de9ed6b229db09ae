"""What time it is: by the database, for a host's own clock may be wrong by hours."""

from datetime import datetime, timedelta

from django.db import connections

from idempotency.clock import SYSTEM
from idempotency.conf import conf

KEPT = 600.0
"""Seconds for which a process counts on from what the database has told it."""


def now() -> datetime:
    """Return the database's time; one statement. Raises: django.db.Error."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
        return at


class _Count:
    told: tuple[float, datetime] | None = None
    """What the clock that nobody sets said, and what the database, in the same moment."""


_count = _Count()


def counted() -> datetime:
    """Return the database's time as this process counts it, by a clock that nobody sets: for what people read.

    Raises: django.db.Error.
    """
    passed = SYSTEM.now()
    told = _count.told
    if told is None or passed - told[0] > KEPT:
        told = _count.told = passed, now()
    since, at = told
    return at + timedelta(seconds=passed - since)
