"""When each recurring task last succeeded, by the database's clock: silence is seen, not assumed.

# Note [Signs]
A silent task has one of three causes, told apart by two signs that the process of beat itself writes, where the host
has it do so: `beat` each time it is about to publish, `broker` each time the broker has taken what it published.

    beat silent                   beat does not run
    beat alive, broker silent     beat runs, and the broker does not take its messages
    both alive, tasks silent      the messages are taken, and no worker does the work: dead, frozen, or idle
    one task silent               its schedule never fires, or its turns fail
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connections

from idempotency import telemetry
from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.exceptions import Misuse

SIGNS = ("beat", "broker")

_LATE = 3.0
"""So many intervals without a success are silence."""
_LEAST = 15.0
"""Seconds for which a sign may be missing at least: beat does nothing else between two messages."""


@dataclass(frozen=True, slots=True)
class Recurring:
    """A task that has to succeed again and again."""

    name: str
    purpose: str
    every: Callable[[], float]
    setting: str

    def turn(self) -> AbstractContextManager[dict[str, Any]]:
        """Do one turn inside; what is put into the dict is kept as its detail if it succeeds."""
        return turn(name=self.name)


def recurring(
    name: str, *, every: Callable[[], float], purpose: str, setting: str = ""
) -> Recurring:
    """Have the silence of a task of your own noticed: on the overview, in the metrics, by the shipped alerts.

    It is watched from now on, in every process that has called this: call it where every process does, e.g. in your
    app's `operations` module, and let each run of the task be one `turn()`.

    Args:
        name: at most 50 characters; a metric's label.
        every: returns the seconds between two turns; three of them without a success are silence, counted from beat's
            first start where it never succeeded.
        purpose: what it does, as the overview says it, e.g. `sends the daily statements`.
        setting: where the interval is set, as the overview says it.

    Raises:
        Misuse: the name is taken, or too long.
    """
    if name in _watched or name in SIGNS or not 1 <= len(name) <= 50:
        raise Misuse(f"{name!r} is no name for a recurring task: it is taken, empty or too long.")
    _watched[name] = Recurring(name, purpose, every, setting)
    return _watched[name]


def watched() -> tuple[Recurring, ...]:
    """Return the recurring tasks, the ledger's own first."""
    return tuple(_watched.values())


@contextmanager
def turn(*, name: str) -> Iterator[dict[str, Any]]:
    """Do one turn of a recurring task inside; what is put into the dict is kept as its detail if it succeeds."""
    began = SYSTEM.now()
    detail: dict[str, Any] = {}
    try:
        yield detail
        beat(name=name, detail=detail)
    except BaseException:
        telemetry.emit(telemetry.TurnEnded(name, "failed", SYSTEM.now() - began))
        raise
    telemetry.emit(telemetry.TurnEnded(name, "ok", SYSTEM.now() - began))


def lately(*, name: str, did: str) -> bool:
    """Return whether the last turn of a recurring task did this, and is less than half an interval ago.

    For a task that messages call: those that waited out an outage come in a crowd, and one turn is enough.
    """
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM idempotency_heartbeat WHERE name = %s AND detail ? %s "
            "AND last_ok_at > clock_timestamp() - %s * interval '1 second'",
            [name, did, _watched[name].every() / 2],
        )
        return cursor.fetchone() is not None


def beat(*, name: str, detail: Mapping[str, Any] | None = None) -> None:
    """Write down that a recurring task has just succeeded, or that a sign of life was given."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "INSERT INTO idempotency_heartbeat (name, last_ok_at, detail) VALUES (%s, clock_timestamp(), %s) "
            "ON CONFLICT (name) DO UPDATE SET last_ok_at = EXCLUDED.last_ok_at, detail = EXCLUDED.detail",
            [name, json.dumps(dict(detail or {}))],
        )


def await_all() -> None:
    """Begin to wait, in a new database: a task that never succeeded is late after its intervals from now, not at once.

    For whatever keeps the time of the tasks, at its start.
    """
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.executemany(
            "INSERT INTO idempotency_heartbeat (name, last_ok_at, detail) "
            "VALUES (%s, clock_timestamp(), '{\"awaited\": true}') ON CONFLICT (name) DO NOTHING",
            [(task.name,) for task in watched()],
        )


@dataclass(frozen=True, slots=True)
class Mark:
    """When a recurring task last succeeded."""

    at: float
    """Seconds since the epoch, by the database's clock."""
    age: float
    """Seconds that have passed since then."""


def marks() -> dict[str, Mark]:
    """Return the last success of each recurring task that ever succeeded, and of each sign of life."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT name, EXTRACT(epoch FROM last_ok_at), EXTRACT(epoch FROM clock_timestamp() - last_ok_at) "
            "FROM idempotency_heartbeat"
        )
        return {name: Mark(float(at), max(0.0, float(age))) for name, at, age in cursor.fetchall()}


def ages() -> dict[str, float]:
    """Return for each recurring task that ever succeeded, and each sign, how many seconds ago that was."""
    return {name: mark.age for name, mark in marks().items()}


def limits() -> dict[str, float]:
    """Return for each recurring task and sign after how many seconds it counts as silent."""
    sign = max(_LEAST, _LATE * min(conf.RECONCILE_EVERY, conf.WAKE_EVERY))
    tasks = {task.name: _LATE * task.every() for task in watched()}
    return tasks | dict.fromkeys(SIGNS, sign)


def judge(known: Mapping[str, float]) -> dict[str, bool]:
    """Return for each task, and each sign that was ever given, whether it is silent.

    Args:
        known: what `ages` returned.
    """
    return {
        name: known.get(name, float("inf")) > limit
        for name, limit in limits().items()
        if name in known or name not in SIGNS
    }


def silent() -> list[str]:
    """Return the tasks that have not succeeded for three of their intervals, or never, and the signs that stopped."""
    return [name for name, late in judge(ages()).items() if late]


_watched: dict[str, Recurring] = {}
recurring(
    "reconcile",
    every=lambda: conf.RECONCILE_EVERY,
    purpose="looks up what nobody knows yet",
    setting="RECONCILE_EVERY",
)
recurring(
    "wake",
    every=lambda: conf.WAKE_EVERY,
    purpose="starts deferred work that is due",
    setting="WAKE_EVERY",
)
recurring(
    "purge",
    every=lambda: conf.PURGE_EVERY,
    purpose="forgets what has expired",
    setting="PURGE_EVERY",
)
