"""Celery with a connection that it keeps, else with its defaults, and with what this project sets for the nudges."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.host.settings")

from celery import Celery
from django.conf import settings
from django.db import transaction

from benchmarks.host.jobs.work import job

app = Celery("benchmark", broker=settings.REDIS_URL)
# By its default it connects to the database anew for each task: a third of a job's time, on both sides.
app.conf.CELERY_DB_REUSE_MAX = 1_000
if "idempotency" in settings.INSTALLED_APPS:
    app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, task_ignore_result=True)
app.autodiscover_tasks()


@app.task(name="benchmark.plain", ignore_result=True)
def plain(number: int) -> None:
    """Do the job."""
    job(number)


def send(number: int) -> None:
    """Send the job once the transaction that is open has committed."""
    transaction.on_commit(lambda: plain.delay(number))
