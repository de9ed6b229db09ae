"""What beat does, how it shows that it is alive, and how others see that."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import redis
from celery.schedules import schedule as interval
from celery.signals import after_task_publish, before_task_publish
from django.conf import settings
from django.db import Error, connections

from idempotency.clock import SYSTEM
from idempotency.conf import conf
from payments.conf import conf as payments

logger = logging.getLogger(__name__)


def schedule() -> dict[str, dict[str, Any]]:
    """Return the beat schedule: intervals only, kept by a clock that nobody sets.

    A crontab would skip or double runs at a change of clocks, and beat would sleep for as long as its host's clock is
    set back. No message has an `expires`: it would be compared with the clocks of two hosts, and a worker whose clock
    is ahead of beat's would take every message and drop it.
    """
    every = {
        "idempotency.tasks.reconcile": conf.RECONCILE_EVERY,
        "idempotency.tasks.wake": conf.WAKE_EVERY,
        "idempotency.tasks.purge": conf.PURGE_EVERY,
        "payments.tasks.follow_up": payments.FOLLOW_EVERY,
        "payments.tasks.tidy": payments.TIDY_EVERY,
    }
    return {
        task: {"task": task, "schedule": interval(seconds, nowfun=_steadily)}
        for task, seconds in every.items()
    }


def _steadily() -> datetime:
    """Return a time that goes on with the machine, whatever its clock is set to; only its differences mean anything."""
    return datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=SYSTEM.now())


def report_signs() -> None:
    """Give a sign of life in the database before each message, and another once the broker has taken it.

    Together with the tasks' own marks they tell which part is silent: beat, the broker, or the workers.
    """
    began = SYSTEM.now()

    def alive(**_: Any) -> None:
        _sign("beat", {"running": SYSTEM.now() - began})

    def taken(**_: Any) -> None:
        _sign("broker")

    before_task_publish.connect(alive, weak=False)
    after_task_publish.connect(taken, weak=False)
    _sign("beat", {"running": 0})
    _await_tasks()


def fresh() -> bool:
    """Return whether beat has given a sign of life lately. Raises: django.db.Error."""
    from idempotency.operations import heartbeat

    known = heartbeat.ages()
    return "beat" in known and not heartbeat.judge(known)["beat"]


def _sign(name: str, detail: dict[str, Any] | None = None) -> None:
    # The Celery app, and this file with it, is imported before the apps are loaded.
    from idempotency.operations import heartbeat

    _write(lambda: heartbeat.beat(name=name, detail=detail))


def _await_tasks() -> None:
    from idempotency.operations import heartbeat

    _write(heartbeat.await_all)


def _write(mark: Callable[[], None]) -> None:
    try:
        mark()
    except Error as error:
        # The mark grows old and /readyz/ says so; beat itself goes on, on a new connection.
        logger.warning("beat cannot show that it is alive: %s", error)
        connections[conf.DATABASE].close()


def connect() -> redis.Redis:
    """Return a client of the store that never waits longer than a second."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
