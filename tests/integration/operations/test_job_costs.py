"""What deferred work costs in statements, commits, round trips and messages: what the page about performance says.

Counted on the wire, once the connection has prepared what it sends; nothing is timed. The job's own statement, one
INSERT, is among them.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from benchmarks.rig.wire import Counts, Meter
from idempotency.exceptions import TemporaryFailure
from idempotency.models import Key
from idempotency.operations import defer, runner
from tests.integration.operations.conftest import make_due
from tests.support.deferring import jobs

pytestmark = pytest.mark.django_db(transaction=True)

COUNTED = 5
WARM = 10
"""Jobs after which a connection has prepared every statement."""

# BEGIN, take, COMMIT: the attempt is on record before it begins (R33).
# BEGIN, hold, the job's own, settle, COMMIT: its effect and its end at once (R15).
JOB = Counts(round_trips=8, statements=4, commits=2)
# Nobody says which row it is: how it is to be found goes before.
DRAINED = Counts(round_trips=9, statements=5, commits=2)
NOTHING_LEFT = Counts(round_trips=4, statements=2, commits=1)
# What the job wrote is undone with its transaction; in the next one the key, and its work, are to wait.
WAITS_AGAIN = Counts(round_trips=11, statements=5, commits=2)
TAKEN_ALREADY = Counts(round_trips=3, statements=1, commits=1)
DEFERRED = Counts(round_trips=3, statements=1, commits=1)


@pytest.fixture
def meter() -> Iterator[Meter]:
    """Lead this test's connection through a meter."""
    at = connection.settings_dict
    before = at["HOST"], at["PORT"], at["OPTIONS"]
    with Meter(at["HOST"] or "127.0.0.1", int(at["PORT"])) as meter:
        connection.close()
        at["HOST"], at["PORT"] = "127.0.0.1", str(meter.port)
        # What is encrypted cannot be counted.
        at["OPTIONS"] = {**at["OPTIONS"], "sslmode": "disable"}
        try:
            yield meter
        finally:
            connection.close()
            at["HOST"], at["PORT"], at["OPTIONS"] = before


def many(count: int) -> list[uuid.UUID]:
    """Promise jobs; return their keys."""
    with transaction.atomic():
        for number in range(count):
            defer("test.job", {"n": number})
    return list(Key.objects.filter(due_at__isnull=False).values_list("id", flat=True))


def cost(meter: Meter, does: Callable[[], object]) -> Counts:
    before = meter.counts
    does()
    return meter.counts - before


def times(counts: Counts, number: int) -> Counts:
    return Counts(counts.round_trips * number, counts.statements * number, counts.commits * number)


def run_each(keys: list[uuid.UUID]) -> None:
    for key in keys:
        runner.run(key_id=key)


def test_a_job_costs_as_much_as_stated(meter: Meter) -> None:
    keys = many(WARM + COUNTED)
    run_each(keys[:WARM])

    assert cost(meter, lambda: run_each(keys[WARM:])) == times(JOB, COUNTED)
    assert cost(meter, lambda: run_each(keys[WARM:])) == times(TAKEN_ALREADY, COUNTED)
    assert len(jobs.runs) == WARM + COUNTED


def test_a_drain_costs_as_much_as_stated(meter: Meter) -> None:
    many(WARM)
    runner.drain()
    many(COUNTED)

    spent = cost(meter, runner.drain)

    assert spent - NOTHING_LEFT == times(DRAINED, COUNTED)
    assert len(jobs.runs) == WARM + COUNTED


def test_a_run_that_waits_again_costs_as_much_as_stated(meter: Meter) -> None:
    keys = many(WARM + COUNTED)
    jobs.script = [TemporaryFailure("busy")] * len(keys)
    run_each(keys[:WARM])
    assert cost(meter, lambda: run_each(keys[WARM:])) == times(WAITS_AGAIN, COUNTED)
    make_due()


def test_a_promise_costs_as_much_as_stated_and_one_message(meter: Meter, nudges: list[Any]) -> None:
    def promise(count: int) -> None:
        for number in range(count):
            defer("test.job", {"n": number})

    promise(WARM)
    nudges.clear()
    assert cost(meter, lambda: promise(COUNTED)) == times(DEFERRED, COUNTED)
    assert len(nudges) == COUNTED
