"""What is open, and for how long: one statement, each part of it a short look at one partial index."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

COUNTED = 10_000
"""Rows of one kind that are counted; beyond that a number says only "so many at least"."""
LATE_AFTER = 60.0
"""Seconds for which due work may lie before it counts as late."""
RECENT = 3_600.0
"""Seconds for which an alarming event counts as recent."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The open keys of one kind."""

    count: int
    age: float
    """Seconds for which the one that is so the longest has been so; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Census:
    """How the ledger stands at one moment."""

    open: Mapping[str, Kind]
    """By kind, every kind of `KINDS`. One key may be of two: what is late is also due."""
    oldest: float
    """Seconds since the oldest key that is open in any way was claimed; 0 where none is."""
    alarms: Mapping[str, int]
    """Recent alarming events by their kind."""


# Each kind: what has to be so, since when it is so, and the index that holds such rows in that order.
_RUNNING = "state = 'in_progress' AND (call_begun OR deferred) AND lease_until"
_WHERE = {
    "running": (f"{_RUNNING} > statement_timestamp()", "claimed_at", "lease_until"),
    "lapsed": (f"{_RUNNING} <= statement_timestamp()", "lease_until", "lease_until"),
    "waiting": ("due_at > statement_timestamp()", "created_at", "due_at"),
    "due": ("due_at <= statement_timestamp()", "due_at", "due_at"),
    "late": (
        f"due_at <= statement_timestamp() - interval '{LATE_AFTER:.0f} seconds'",
        "due_at",
        "due_at",
    ),
    "unknown": ("unknown_since IS NOT NULL", "unknown_since", "unknown_since"),
    "needs_person": ("needs_person_since IS NOT NULL", "needs_person_since", "needs_person_since"),
    "watched": ("watched AND next_lookup_at IS NOT NULL", "settled_at", "next_lookup_at"),
}
KINDS = tuple(_WHERE)
_SETTLED = frozenset({"watched", "needs_person"})
"""Kinds that a settled key may be of: it is no longer open."""

_KINDS_SQL = " UNION ALL ".join(
    f"SELECT '{kind}', count(*), max(since), max(total) FROM ("
    f"SELECT EXTRACT(epoch FROM clock_timestamp() - {since}) AS since, "
    "EXTRACT(epoch FROM clock_timestamp() - created_at) AS total "
    f"FROM idempotency_key WHERE {condition} ORDER BY {index} LIMIT {COUNTED}) AS {kind}"
    for kind, (condition, since, index) in _WHERE.items()
)
_ALARMS_SQL = (
    "SELECT kind, count(*) FROM idempotency_event "
    f"WHERE alarming AND at > statement_timestamp() - interval '{RECENT:.0f} seconds' GROUP BY kind"
)


def take(*, connection: BaseDatabaseWrapper) -> Census:
    """Count what is open now."""
    with connection.cursor() as cursor:
        cursor.execute(_KINDS_SQL)
        rows = cursor.fetchall()
        cursor.execute(_ALARMS_SQL)
        alarms = {kind: int(count) for kind, count in cursor.fetchall()}
    kinds = {kind: Kind(int(count), _seconds(since)) for kind, count, since, _ in rows}
    oldest = max(_seconds(total) for kind, _, _, total in rows if kind not in _SETTLED)
    return Census(kinds, oldest, alarms)


def oldest_due(*, connection: BaseDatabaseWrapper) -> float:
    """Return for how many seconds the oldest due work has been due; 0 where none is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXTRACT(epoch FROM clock_timestamp() - min(due_at)) FROM idempotency_key "
            "WHERE due_at <= statement_timestamp()"
        )
        return _seconds(cursor.fetchone()[0])


def _seconds(value: object) -> float:
    return max(0.0, float(str(value))) if value is not None else 0.0
