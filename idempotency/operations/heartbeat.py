"""When each recurring task last succeeded, by the database's clock: silence is seen, not assumed."""

import json
from collections.abc import Mapping
from typing import Any

from django.db import connections

from idempotency.conf import conf

_LATE = 3.0
"""So many intervals without a success are silence."""


def beat(*, name: str, detail: Mapping[str, Any] | None = None) -> None:
    """Write down that a recurring task has just succeeded."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "INSERT INTO idempotency_heartbeat (name, last_ok_at, detail) VALUES (%s, clock_timestamp(), %s) "
            "ON CONFLICT (name) DO UPDATE SET last_ok_at = EXCLUDED.last_ok_at, detail = EXCLUDED.detail",
            [name, json.dumps(dict(detail or {}))],
        )


def ages() -> dict[str, float]:
    """Return for each recurring task that ever succeeded how many seconds ago that was."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT name, EXTRACT(epoch FROM clock_timestamp() - last_ok_at) FROM idempotency_heartbeat"
        )
        return {name: max(0.0, float(age)) for name, age in cursor.fetchall()}


def silent() -> list[str]:
    """Return the recurring tasks that have not succeeded for three of their intervals, or never."""
    known = ages()
    every = {
        "reconcile": conf.RECONCILE_EVERY,
        "wake": conf.WAKE_EVERY,
        "purge": conf.PURGE_EVERY,
    }
    return [
        name for name, seconds in every.items() if known.get(name, float("inf")) > _LATE * seconds
    ]
