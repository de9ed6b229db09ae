"""What time it is: by the database, for a host's own clock may be wrong by hours."""

from datetime import datetime

from django.db import connections

from idempotency.conf import conf


def now() -> datetime:
    """Return the database's time; one statement. Raises: django.db.Error."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        at: datetime = cursor.fetchone()[0]
        return at
