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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connections

from idempotency import telemetry
from idempotency.clock import SYSTEM
from idempotency.conf import conf

SIGNS = ("beat", "broker")

_LATE = 3.0
"""So many intervals without a success are silence."""
_LEAST = 15.0
"""Seconds for which a sign may be missing at least: beat does nothing else between two messages."""


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


def beat(*, name: str, detail: Mapping[str, Any] | None = None) -> None:
    """Write down that a recurring task has just succeeded, or that a sign of life was given."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "INSERT INTO idempotency_heartbeat (name, last_ok_at, detail) VALUES (%s, clock_timestamp(), %s) "
            "ON CONFLICT (name) DO UPDATE SET last_ok_at = EXCLUDED.last_ok_at, detail = EXCLUDED.detail",
            [name, json.dumps(dict(detail or {}))],
        )


def ages() -> dict[str, float]:
    """Return for each recurring task that ever succeeded, and each sign, how many seconds ago that was."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT name, EXTRACT(epoch FROM clock_timestamp() - last_ok_at) FROM idempotency_heartbeat"
        )
        return {name: max(0.0, float(age)) for name, age in cursor.fetchall()}


def limits() -> dict[str, float]:
    """Return for each recurring task and sign after how many seconds it counts as silent."""
    sign = max(_LEAST, _LATE * min(conf.RECONCILE_EVERY, conf.WAKE_EVERY))
    return {
        "reconcile": _LATE * conf.RECONCILE_EVERY,
        "wake": _LATE * conf.WAKE_EVERY,
        "purge": _LATE * conf.PURGE_EVERY,
    } | dict.fromkeys(SIGNS, sign)


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
