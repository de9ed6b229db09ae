"""The Celery app, its beat schedule, and what a worker or beat process does at its start."""

import logging.config
import os
from typing import Any

from celery import Celery, Task
from celery.signals import (
    beat_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
)
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections

from project import lifeline
from project.beat import report_signs, schedule

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

app = Celery("project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.on_configure.connect
def add_schedule(sender: Celery, **_: Any) -> None:
    """Put the beat schedule in, once the settings are read."""
    sender.conf.beat_schedule = schedule()
    # In memory: a schedule file can break, and a run too many does no harm.
    sender.conf.beat_scheduler = "celery.beat:Scheduler"


@setup_logging.connect
def log_as_django(**_: Any) -> None:
    """Log through the settings' LOGGING; Celery would replace it by its own."""
    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect
def load(**_: Any) -> None:
    """Make the first task as quick as the second: once, before the pool is forked."""
    from project import warm

    warm.load()
    _require()


@worker_process_init.connect
def end_with_parent(**_: Any) -> None:
    """End a pool process whose worker was killed; it would wait for work for ever."""
    lifeline.end_with_parent()


@task_prerun.connect
@task_postrun.connect
def keep_connection(sender: "Task[Any, Any]", **_: Any) -> None:
    """Keep the database connection between tasks as Django does between requests: while it is usable and young.

    Celery itself closes it after CELERY_DB_REUSE_MAX tasks, and does not ask whether it is broken.
    """
    if not sender.request.is_eager:
        close_old_connections()


@beat_init.connect
def report(**_: Any) -> None:
    """Let /readyz/ see that beat is alive."""
    _require()
    report_signs()


def _require() -> None:
    """Refuse a configuration that cannot work; Celery survives every exception of a receiver but this one."""
    from project import ready

    try:
        ready.require()
    except ImproperlyConfigured as error:
        raise SystemExit(str(error)) from error
