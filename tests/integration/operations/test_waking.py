"""The row is the queue: nudges come after the commit, sweeps find all that is due, nobody waits for a broker (R32)."""

import threading
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from idempotency import tasks
from idempotency.conf import conf
from idempotency.models import Heartbeat, Key
from idempotency.operations import defer, heartbeat, runner, wake
from idempotency.types import State
from tests.integration.operations.conftest import Caller, key_of, make_due
from tests.support.deferring import jobs

pytestmark = pytest.mark.django_db(transaction=True)


def many(count: int) -> None:
    with transaction.atomic():
        for number in range(count):
            defer("test.job", {"n": number})


def test_g4_nothing_is_published_before_the_commit(nudges: list[Any]) -> None:
    with transaction.atomic():
        defer("test.job", {})
        assert nudges == []
    assert len(nudges) == 1


def test_g4_nothing_is_published_after_a_rollback(nudges: list[Any]) -> None:
    with transaction.atomic():
        defer("test.job", {})
        transaction.set_rollback(True)
    assert (nudges, Key.objects.count()) == ([], 0)


def test_r32_a_nudge_that_raises_changes_no_answer(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("no broker")

    monkeypatch.setattr(wake, "_publisher", broken)
    assert caller.job()


def test_r32_a_sweep_finds_every_due_row_and_makes_no_storm(nudges: list[Any]) -> None:
    many(3)
    nudges.clear()
    assert wake.sweep() == 3
    assert nudges == [()] * 3

    many(40)
    nudges.clear()
    assert wake.sweep() == wake.SWEEP_NUDGES
    assert len(nudges) == wake.SWEEP_NUDGES


def test_r32_a_sweep_of_nothing_is_one_query(nudges: list[Any]) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert wake.sweep() == 0
    assert len(captured) == 1
    assert nudges == []


def test_r32_a_second_copy_of_a_message_finds_the_lease_and_leaves(caller: Caller) -> None:
    operation = caller.job()
    key_id = str(key_of(operation).id)
    jobs.script = [lambda _: tasks_in_a_thread(key_id)]
    tasks.run(key_id)
    tasks.run(key_id)

    assert len(jobs.runs) == 1
    assert key_of(operation).state == State.COMPLETED


def tasks_in_a_thread(key_id: str) -> None:
    def second() -> None:
        tasks.run(key_id)
        connection.close()

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()


def test_r32_a_nudge_without_a_name_runs_all_that_is_due(caller: Caller) -> None:
    many(5)
    tasks.run()
    assert len(jobs.runs) == 5


def test_a_drain_begins_nothing_after_its_time(caller: Caller) -> None:
    many(5)
    assert runner.drain(seconds=0) == 1
    assert runner.drain() == 4


# -- recurring tasks and commands --------------------------------------------------------------------------------------


def test_recurring_tasks_show_that_they_are_alive(caller: Caller) -> None:
    ours = {"reconcile", "wake", "purge"}
    for task in heartbeat.watched():
        if task.name not in ours:
            heartbeat.beat(name=task.name)
    assert heartbeat.silent() == ["reconcile", "wake", "purge"]
    many(1)
    tasks.wake()
    tasks.reconcile()
    tasks.purge()

    assert heartbeat.silent() == []
    assert Heartbeat.objects.get(name="wake").detail == {"nudges": 1}
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_heartbeat SET last_ok_at = now() - interval '16 s'")
    assert heartbeat.silent() == ["reconcile", "wake"]
    tasks.wake()
    assert heartbeat.silent() == ["reconcile"]
    assert heartbeat.ages()["reconcile"] >= 3 * conf.RECONCILE_EVERY


def test_r32_a_crowd_of_late_messages_sweeps_once(nudges: list[tuple[str, ...]]) -> None:
    many(3)
    nudges.clear()
    for _ in range(5):
        tasks.wake()
    assert nudges == [()] * 3
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_heartbeat SET last_ok_at = now() - interval '3 s'")
    tasks.wake()
    assert nudges == [()] * 6
    # What the sweep outside Celery did is no nudge.
    heartbeat.beat(name="wake", detail={"ran": 3})
    tasks.wake()
    assert nudges == [()] * 9


def test_r32_the_command_does_the_work_without_celery() -> None:
    many(3)
    out = StringIO()
    call_command("idempotency_wake", "--run", stdout=out)

    assert out.getvalue() == "3 run\n"
    assert set(Key.objects.values_list("state", flat=True)) == {"completed"}
    assert Heartbeat.objects.get().detail == {"ran": 3}


def test_r32_the_command_nudges(nudges: list[Any]) -> None:
    many(2)
    nudges.clear()
    call_command("idempotency_wake", stdout=StringIO())
    assert nudges == [(), ()]


def test_e9_the_loop_recovers_after_the_server_ended_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweeps: list[int] = []

    class Stop:
        def set(self) -> None: ...

        def is_set(self) -> bool:
            return False

        def wait(self, _: float) -> bool:
            sweeps.append(Heartbeat.objects.count())
            if len(sweeps) == 1:
                many(1)
                _end_this_connection()
            return len(sweeps) == 3

    monkeypatch.setattr(threading, "Event", Stop)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    call_command("idempotency_wake", "--run", "--loop", stdout=StringIO(), stderr=StringIO())

    assert len(jobs.runs) == 1


def _end_this_connection() -> None:
    pid = connection.connection.info.backend_pid
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    other.close()


def test_r21_the_purge_command(caller: Caller) -> None:
    many(3)
    runner.drain()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_key SET settled_at = settled_at - interval '31 days'")
    out = StringIO()
    call_command("idempotency_purge", "--pause", "0", stdout=out)
    assert out.getvalue() == "0 answers and 3 keys removed\n"


@pytest.mark.parametrize("every", ["-1", "0", "nan", "inf"])
def test_the_wake_command_refuses_a_time_that_is_no_rest_between_two_sweeps(every: str) -> None:
    """Without a rest it would ask the database as fast as it answers."""
    with pytest.raises(CommandError, match="--every"):
        call_command("idempotency_wake", "--loop", f"--every={every}")


@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_the_purge_command_refuses_a_time_that_is_none(seconds: str) -> None:
    with pytest.raises(CommandError, match="--seconds"):
        call_command("idempotency_purge", f"--seconds={seconds}")


@pytest.mark.parametrize("pause", ["-1", "nan", "inf"])
def test_the_purge_command_refuses_a_pause_that_is_none(pause: str) -> None:
    with pytest.raises(CommandError, match="--pause"):
        call_command("idempotency_purge", f"--pause={pause}")


# -- publishing --------------------------------------------------------------------------------------------------------


def test_the_publisher_never_blocks_and_never_raises() -> None:
    begun, go_on = threading.Event(), threading.Event()
    published: list[tuple[str, ...]] = []

    def publish(arguments: tuple[str, ...]) -> None:
        begun.set()
        go_on.wait()
        published.append(arguments)
        raise RuntimeError("a broker's error")

    publisher = wake.Publisher(publish, size=2)
    publisher.put(("1",))
    begun.wait()
    # A put that blocked would do so until the test's time is over: nothing goes on before all are put.
    for number in range(2, 100):
        publisher.put((str(number),))
    assert not publisher.flush(0.01)
    go_on.set()
    assert publisher.flush(5)
    assert published == [("1",), ("2",), ("3",)]


def test_r32_work_that_lies_in_the_future_is_not_read_by_a_sweep() -> None:
    many(300)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_key SET due_at = due_at + interval '1 day'")
        cursor.execute("ANALYZE idempotency_key")
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN (ANALYZE, FORMAT TEXT) SELECT FROM idempotency_key "
            "WHERE due_at <= statement_timestamp() ORDER BY due_at LIMIT 16"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Index Cond: (due_at <= statement_timestamp())" in plan
    assert "Rows Removed" not in plan
    make_due()
