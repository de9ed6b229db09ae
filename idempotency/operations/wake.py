"""Wake a worker: the row is the queue, a message only a nudge (R32).

# Note [Nudge]
Nothing is published before commit, and nobody waits for the broker: a thread of its own publishes, behind a queue.
A broker that refuses, hangs or is stopped costs a request nothing. What is lost here, by a full queue, a crash or the
broker itself, is found by the sweep.
"""

import logging
import os
import queue
import threading
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from django.db import connections, transaction

from idempotency import telemetry
from idempotency.conf import conf
from idempotency.ledger import due

logger = logging.getLogger(__name__)

RUN_TASK = "idempotency.tasks.run"

SWEEP_NUDGES = 16
"""Messages that one sweep publishes at most; each lets a worker run what is due until its time is up."""
_LIVES = 60
"""Seconds: a nudge that nobody took by then has been repeated by the sweep. Counted by the broker, if it counts; a
task's `expires` is compared with the worker's clock, and a worker whose clock is ahead would drop every nudge."""
_QUEUE = 1_000

Publish = Callable[[tuple[str, ...]], None]


def nudge(*, key_id: uuid.UUID) -> None:
    """Let a worker run this key's work once the present transaction has committed."""
    # A lambda: Django 5.2 fails on a robust callback without __qualname__ where that raises.
    transaction.on_commit(
        lambda: _publisher().put((str(key_id),)), using=conf.DATABASE, robust=True
    )


def sweep() -> int:
    """Nudge workers for all that is due, found from the rows alone; return how many messages that took."""
    found = due.count(connection=connections[conf.DATABASE], at_most=SWEEP_NUDGES)
    for _ in range(found):
        _publisher().put(())
    return found


def flush(*, seconds: float) -> bool:
    """Wait until all nudges of this process are published; return whether they are. For programs about to end."""
    return _publisher().flush(seconds)


def current_message_id() -> str | None:
    """Return the id of the Celery message that is being worked on, or None; a redelivery has the same.

    None in a task that another one calls as a function: the message is not its own, and may call it many times.
    """
    app = _celery()
    task = None if app is None else app.current_worker_task
    return None if task is None or task is not app.current_task else str(task.request.id)


def celery_settings() -> Mapping[str, Any] | None:
    """Return the settings of the host's Celery app, or None where there is no Celery: for the checks."""
    app = _celery()
    return None if app is None else cast(Mapping[str, Any], app.conf)


# -- publishing --------------------------------------------------------------------------------------------------------


class Publisher:
    """Publishes in the background, one message at a time; never blocks and never raises."""

    def __init__(self, publish: Publish, *, size: int = _QUEUE) -> None:
        self._publish = publish
        self._queue: queue.Queue[tuple[str, ...]] = queue.Queue(size)
        self._idle = threading.Condition()
        self._unpublished = 0
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, arguments: tuple[str, ...]) -> None:
        """Publish soon, or never: a full queue drops the nudge."""
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="idempotency-wake", daemon=True
                )
                self._thread.start()
        with self._idle:
            self._unpublished += 1
        try:
            self._queue.put_nowait(arguments)
        except queue.Full:
            self._done()
            telemetry.emit(telemetry.NudgeLost("queue-full"))

    def flush(self, seconds: float) -> bool:
        """Wait until nothing is left to publish."""
        with self._idle:
            return self._idle.wait_for(lambda: self._unpublished == 0, seconds)

    def _work(self) -> None:
        while True:
            arguments = self._queue.get()
            try:
                self._publish(arguments)
            except Exception as error:  # noqa: BLE001 - the sweep repeats it, whatever it was
                logger.warning("A nudge was not published: %s: %s", type(error).__name__, error)
                telemetry.emit(telemetry.NudgeLost(type(error).__name__))
            finally:
                self._done()

    def _done(self) -> None:
        with self._idle:
            self._unpublished -= 1
            self._idle.notify_all()


def publish(arguments: tuple[str, ...]) -> None:
    """Send the task by its name, so that the sender need not import it; does nothing where there is no Celery."""
    app = _celery()
    if app is not None:
        app.send_task(
            RUN_TASK,
            args=list(arguments),
            expiration=_LIVES,
            retry=False,
            ignore_result=True,
        )


def _celery() -> Any:
    """Return the host's Celery app, or None: then only the sweep finds what is due."""
    try:
        from celery import current_app
    except ImportError:
        return None
    # Where nobody made an app Celery makes one up, which would publish to nowhere.
    made_up = current_app.main == "default" and not getattr(current_app, "set_as_current", True)
    return None if made_up else current_app


@cache
def _publisher_of(pid: int) -> Publisher:
    return Publisher(publish)


def _publisher() -> Publisher:
    return _publisher_of(os.getpid())
