"""What beat does, how it shows that it is alive, and how others see that."""

import logging
from typing import Any

import redis
from celery.signals import after_task_publish
from django.conf import settings

from idempotency.conf import conf
from payments.conf import conf as payments

logger = logging.getLogger(__name__)

HEARTBEAT_KEY = "project:beat"


def schedule() -> dict[str, dict[str, Any]]:
    """Return the beat schedule: intervals only, each message void once the next one is due.

    A crontab would skip or double runs at a change of clocks, and a message that waited out an
    outage of the broker would make a crowd.
    """
    every = {
        "idempotency.tasks.reconcile": conf.RECONCILE_EVERY,
        "idempotency.tasks.wake": conf.WAKE_EVERY,
        "idempotency.tasks.purge": conf.PURGE_EVERY,
        "payments.tasks.follow_up": payments.FOLLOW_EVERY,
    }
    return {
        task: {"task": task, "schedule": seconds, "options": {"expires": seconds}}
        for task, seconds in every.items()
    }


def report_ticks() -> None:
    """Mark beat as alive now, and for three intervals after each message that it has published."""
    store = connect()
    seconds = max(15, int(3 * min(conf.RECONCILE_EVERY, conf.WAKE_EVERY)))

    def tick(**_: Any) -> None:
        try:
            store.set(HEARTBEAT_KEY, 1, ex=seconds)
        except redis.RedisError as error:
            # The mark runs out and /readyz/ says so; beat itself goes on.
            logger.warning("beat cannot show that it is alive: %s", error)

    after_task_publish.connect(tick, weak=False)
    tick()


def fresh() -> bool:
    """Return whether beat has published lately. Raises: redis.RedisError."""
    return bool(connect().exists(HEARTBEAT_KEY))


def connect() -> redis.Redis:
    """Return a client of the store that never waits longer than a second."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
