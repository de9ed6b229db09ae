"""Celery's shells, one call each: what is done, and that it may be done twice, is decided below.

All of it can also run without Celery: `manage.py idempotency_wake --run`, `idempotency_reconcile`, `idempotency_purge`.
"""

import logging
import uuid
from typing import Any

try:
    from celery import shared_task
    from celery.concurrency.prefork import TaskPool
    from celery.signals import celeryd_after_setup, worker_process_shutdown
except ImportError as error:
    raise ImportError("the Celery tasks need Celery: install the extra `celery`") from error

from idempotency import reconciliation
from idempotency.ledger import owed
from idempotency.ledger.purge import purge as purge_expired
from idempotency.operations import heartbeat, runner
from idempotency.operations import wake as waking

logger = logging.getLogger(__name__)


@shared_task(name=waking.RUN_TASK, ignore_result=True)
def run(key_id: str | None = None) -> None:
    """Run the work of one key, or without one whatever is due."""
    if key_id is None:
        runner.drain()
    else:
        runner.run(key_id=uuid.UUID(key_id))


@shared_task(name="idempotency.tasks.wake", ignore_result=True)
def wake() -> None:
    """Nudge workers for all deferred work that is due, unless that was done a moment ago."""
    # Else each of a crowd of late messages would publish a crowd of nudges.
    if heartbeat.lately(name="wake", did="nudges"):
        return
    with heartbeat.turn(name="wake") as detail:
        detail["nudges"] = waking.sweep()


@shared_task(name="idempotency.tasks.reconcile", ignore_result=True)
def reconcile() -> None:
    """Ask about the keys of which nobody knows how they ended."""
    with heartbeat.turn(name="reconcile") as detail:
        detail["keys"] = len(reconciliation.run())


@shared_task(name="idempotency.tasks.purge", ignore_result=True)
def purge() -> None:
    """Forget what has expired."""
    with heartbeat.turn(name="purge") as detail:
        purged = purge_expired()
        detail |= {"answers": purged.answers, "keys": purged.keys}


@celeryd_after_setup.connect
def warn_of_pool(instance: Any, **_: Any) -> None:
    """Say that a pool without processes ends no task that hangs; a check does not see `--pool`."""
    if not issubclass(instance.pool_cls, TaskPool):
        logger.warning(
            "The pool %s knows no task_time_limit: a task that hangs takes its place for ever; prefork ends it.",
            instance.pool_cls.__module__,
        )


@worker_process_shutdown.connect
def write_what_is_owed(**_: Any) -> None:
    """Write what a pool process owes before it ends: it ends without `atexit`."""
    owed.pay()
