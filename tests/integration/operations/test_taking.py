"""No two workers have one row, and a take takes what it says (R32)."""

import threading
import uuid
from collections import Counter
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from idempotency.execution import Overtaken
from idempotency.ledger import Claim, due
from idempotency.ledger.phases import Phases, phase
from idempotency.models import Key, Operation
from idempotency.operations import defer, runner
from idempotency.types import OutsideRequest, OutsideResult
from tests.integration.operations.conftest import Caller, key_of, make_due, work_of
from tests.support.deferring import jobs
from tests.support.filled import fill
from tests.support.host import KEYED
from tests.support.plans import most_passed_over, plans_of

pytestmark = pytest.mark.django_db(transaction=True)
LEASES = {"test.job": 45.0}


def many(count: int) -> None:
    with transaction.atomic():
        for number in range(count):
            defer("test.job", {"n": number})


def together(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_r32_of_many_workers_one_gets_the_row(caller: Caller) -> None:
    operation = caller.job()
    start = threading.Barrier(16)
    got: list[Any] = []

    def worker(_: int) -> None:
        start.wait()
        got.append(runner.run(key_id=key_of(operation).id))
        connection.close()

    together(16, worker)

    assert len([ended for ended in got if ended is not None]) == 1
    assert (work_of(operation).attempts, len(jobs.runs)) == (1, 1)


def test_r32_no_row_goes_to_two_workers() -> None:
    many(400)
    taken: list[uuid.UUID] = []

    def worker(_: int) -> None:
        try:
            while True:
                with phase(using="default") as phases:
                    work = due.take(connection=phases.connection, leases=LEASES)
                if work is None:
                    return
                taken.append(work.key_id)
        finally:
            connection.close()

    together(4, worker)

    assert Counter(Counter(taken).values()) == {1: 400}
    assert set(Operation.objects.values_list("attempts", flat=True)) == {1}


@pytest.mark.parametrize("analyzed", [True, False])
def test_the_limit_is_kept_under_every_plan(analyzed: bool) -> None:
    """`UPDATE … WHERE id IN (SELECT … LIMIT 1 FOR UPDATE SKIP LOCKED)` can take many rows; this must not."""
    many(60)
    with connection.cursor() as cursor:
        if analyzed:
            cursor.execute("ANALYZE idempotency_key, idempotency_operation")
        for plan in ("hashjoin", "mergejoin", "material", "sort"):
            cursor.execute(f"SET enable_{plan} = off")
    try:
        with phase(using="default") as phases:
            assert due.take(connection=phases.connection, leases=LEASES) is not None
        assert Key.objects.filter(lease_until__isnull=False).count() == 1
        assert (
            due.postpone(connection=connection, waits={"test.job": 60}, limit=7)
            == Key.objects.filter(
                due_at__gt=Key.objects.get(lease_until__isnull=False).claimed_at
            ).count()
            == 7
        )
    finally:
        connection.close()


@pytest.mark.parametrize("settled", [0, 1, 5_000])
@pytest.mark.parametrize("named", [True, False])
def test_one_row_is_not_searched_for_among_all_that_are_due(settled: int, named: bool) -> None:
    """A walk over what is due, for each take, would make a backlog's cost the square of its length.

    What came at once is in no statistics yet: by them nothing is due, and a walk over it would cost nothing.
    """
    if settled:
        fill(rows=settled)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_key SET due_at = due_at + interval '1 year'")
        cursor.execute("VACUUM (ANALYZE) idempotency_key, idempotency_operation")
    many(300)
    waiting = Key.objects.filter(due_at__lte=Now()).order_by("-due_at")
    key_id = waiting[0].id if named else None
    plans = plans_of(lambda: due.take(connection=connection, leases=LEASES, key_id=key_id))

    assert most_passed_over(plans[-1]) < 10, plans[-1]


def test_the_oldest_goes_first() -> None:
    many(3)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key k SET due_at = due_at - (o.input->>'n')::int * interval '1 hour' "
            "FROM idempotency_operation o WHERE o.key_id = k.id"
        )
    runner.drain()
    assert [given["n"] for given in jobs.runs] == [2, 1, 0]


def test_r12_a_run_whose_lease_was_lost_changes_nothing(caller: Caller) -> None:
    operation = caller.job()
    with phase(using="default") as phases:
        work = due.take(connection=phases.connection, leases=LEASES)
    assert work is not None
    Key.objects.update(token=work.token + 1)

    assert runner.run() is None
    phases = Phases(using="default")
    phases.open()
    held = due.hold(phases=phases, key_id=work.key_id, token=work.token)
    phases.roll_back()
    assert not held
    assert key_of(operation).state == "in_progress"


def test_r12_an_overtaken_run_is_dropped(caller: Caller) -> None:
    operation = caller.job()

    def overtake(_: OutsideRequest) -> OutsideResult:
        # What a sweep does, seen from a run that slept through its lease.
        connection.cursor().execute("UPDATE idempotency_key SET token = token + 1")
        return OutsideResult("r", {})

    def call(claim: Claim) -> None:
        claim.outside_call(step="call", request={}, send=overtake, downstream=KEYED)

    jobs.script = [call]
    assert isinstance(runner.run(), Overtaken)

    assert work_of(operation).result is None
    assert key_of(operation).state == "in_progress"


def test_a_row_that_is_locked_is_passed_over() -> None:
    many(2)
    seen: list[int] = []

    def worker(_: int) -> None:
        runner.drain()
        seen.append(len(jobs.runs))
        connection.close()

    with transaction.atomic():
        Key.objects.select_for_update().order_by("due_at").first()
        together(1, worker)
    assert seen == [1]
    make_due()
    runner.drain()
    assert len(jobs.runs) == 2
