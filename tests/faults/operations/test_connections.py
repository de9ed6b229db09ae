"""A worker keeps its database connection from job to job, and does not trip over one that the server has ended."""

import pytest
from celery import Celery
from django.db import connection

from idempotency.operations.wake import RUN_TASK
from tests.faults.operations.conftest import key_of, promise, work_of
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


def test_a_connection_serves_many_jobs_until_it_breaks(stack: Stack) -> None:
    stack.start_worker(concurrency=1)
    first = _do(stack)
    assert _do(stack) == first

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])

    assert _do(stack) != first


def _do(stack: Stack) -> int:
    """Have one job done; return the process at the server that its worker is connected to."""
    operation = promise("poison.mark")
    with Celery(broker=stack.broker_url, set_as_current=False) as app:
        app.send_task(RUN_TASK, args=[str(key_of(operation).id)], ignore_result=True)
    # Nobody sweeps here: what the first run does not do is not done.
    stack.wait_until(lambda: key_of(operation).state == "completed", "it is done")
    assert work_of(operation).attempts == 1
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'idempotency-ledger-worker'"
        )
        ((pid,),) = cursor.fetchall()
    return int(pid)
