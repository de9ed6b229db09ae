"""Attempts begun, saved state and final error are three separate facts (R33)."""

from collections.abc import Callable
from threading import Thread
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection
from django.utils import timezone

from idempotency import reconciliation
from idempotency.exceptions import AccountRefused, CallFailed, CallRejected, TemporaryFailure
from idempotency.execution import Free
from idempotency.ledger import Claim, due
from idempotency.ledger.phases import phase
from idempotency.models import Key
from idempotency.operations import runner
from idempotency.types import CallReport, Outcome, State
from tests.integration.operations.conftest import (
    Caller,
    key_of,
    let_lapse,
    let_look_up,
    make_due,
    work_of,
)
from tests.support.deferring import jobs
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


def run_out(operation_id: str) -> dict[str, Any]:
    """Run until nothing waits."""
    while key_of(operation_id).due_at is not None:
        make_due(operation_id)
        assert runner.run(key_id=key_of(operation_id).id) is not None
    return facts(operation_id)


def facts(operation_id: str) -> dict[str, Any]:
    work, key = work_of(operation_id), key_of(operation_id)
    return {
        "state": key.state,
        "attempts": work.attempts,
        "result": work.result,
        "error": (work.error or {}).get("code"),
    }


def test_r33_a_result_at_the_first_run(caller: Caller) -> None:
    operation = caller.job({"a": 1})

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 1,
        "result": {"did": {"a": 1}},
        "error": None,
    }
    assert Group.objects.count() == 1


def test_r33_two_temporary_failures_then_success_are_three_attempts(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure("busy"), TemporaryFailure("busy")]

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 3,
        "result": {"did": 1},
        "error": None,
    }
    assert Group.objects.count() == 1
    assert jobs.ended == []


def test_r33_what_the_server_undid_for_reasons_of_its_own_is_tried_again(caller: Caller) -> None:
    """psycopg calls a server that takes no writes, or has ended an idle transaction, an internal error."""

    def read_only(_: Claim) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        Group.objects.create(name="refused")

    def idle(_: Claim) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
        until_ended(connection.connection.info.backend_pid)
        Group.objects.create(name="refused")

    operation = caller.job()
    jobs.script = [read_only, idle]

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 3,
        "result": {"did": 1},
        "error": None,
    }


def until_ended(backend: int) -> None:
    with psycopg.connect(
        connection.connection.info.dsn,
        autocommit=True,
        password=connection.settings_dict["PASSWORD"],
    ) as other:
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [backend]).fetchone():
            pass


def test_r31_a_result_that_json_columns_cannot_hold_is_kept_all_the_same(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [lambda _: {"said": "a\x00b\ud800"}]

    assert run_out(operation)["result"] == {"said": "a\ufffdb\ufffd"}


@pytest.mark.parametrize("error", [TemporaryFailure, RuntimeError])
def test_r33_nor_does_the_word_of_an_error_keep_its_ending_off_the_record(
    caller: Caller, error: type[Exception]
) -> None:
    operation = caller.job()
    jobs.script = [error("bro\x00ken") for _ in range(9)]

    assert run_out(operation)["error"] == "gave-up"
    assert work_of(operation).last_error == f"{error.__name__}: bro\ufffdken"


def test_r33_always_temporary_gives_up_at_the_limit(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure("busy") for _ in range(9)]

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 3,
        "result": None,
        "error": "gave-up",
    }
    assert Group.objects.count() == 0
    assert work_of(operation).last_error == "TemporaryFailure: busy"
    assert jobs.ended == [(key_of(operation).id, State.COMPLETED, TemporaryFailure)]


def test_r33_an_ordinary_error_ends_at_once(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [ValueError("a secret detail")]

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 1,
        "result": None,
        "error": "gave-up",
    }
    assert "secret" not in str(work_of(operation).error)
    assert work_of(operation).last_error == "ValueError: a secret detail"


def _wrapped(_: Claim) -> None:
    try:
        raise TemporaryFailure("busy", retry_after=50)
    except TemporaryFailure as error:
        raise RuntimeError("wrapped by the handler") from error


def test_r33_a_temporary_failure_is_recognised_through_its_effects(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [_wrapped]

    assert isinstance(runner.run(), Free)
    assert facts(operation)["state"] == "in_progress"
    assert 49 < float(caller.look(operation)["Retry-After"]) < 80


def test_r33_an_other_side_that_refused_for_a_moment_is_tried_again(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    report = CallReport(attempts=3, seconds=1, outcome=Outcome.TRANSIENT, sent=True)
    other_side.script = [CallFailed("503, not executed", sent=True, report=report)]

    assert run_out(operation)["attempts"] == 2
    assert facts(operation)["state"] == "completed"
    assert len(other_side.effects) == 1


def test_r33_a_refusal_that_a_repeat_does_not_mend_ends_at_once(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    report = CallReport(attempts=1, seconds=1, outcome=Outcome.FATAL, sent=True)
    other_side.script = [CallFailed("400: our way of asking", sent=True, report=report)]

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 1,
        "result": None,
        "error": "gave-up",
    }


def test_r33_work_waits_for_credentials_to_be_repaired_and_spends_no_attempt(
    caller: Caller,
) -> None:
    """An API key that was rotated under a queue: no payout of it may end as failed."""
    operation = caller.job({"n": 1}, path="/transfers/")
    report = CallReport(attempts=1, seconds=1, outcome=Outcome.FATAL, sent=True)
    other_side.script = [AccountRefused("401", report=report) for _ in range(20)]

    for _ in range(20):
        assert isinstance(runner.run(), Free)
        assert (facts(operation)["state"], facts(operation)["attempts"]) == ("in_progress", 0)
        assert 299 < float(caller.look(operation)["Retry-After"]) < 460
        make_due()
    assert run_out(operation)["attempts"] == 1
    assert facts(operation)["state"] == "completed"
    assert len(other_side.effects) == 1


def test_r14_a_business_refusal_ends_with_its_own_code(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = [CallRejected("No such account.", code="account_invalid")]

    assert run_out(operation) == {
        "state": "completed",
        "attempts": 1,
        "result": None,
        "error": "account-invalid",
    }
    assert jobs.ended == [(key_of(operation).id, State.COMPLETED, CallRejected)]


@pytest.mark.parametrize("code", ["circuit-open", "overloaded"])
def test_r33_what_is_known_to_be_refused_is_not_begun(caller: Caller, code: str) -> None:
    operation = caller.job(path="/guarded/")
    jobs.refusal = CallFailed("not now", code=code, retry_after=30)

    assert runner.run() is None
    assert (facts(operation)["state"], facts(operation)["attempts"]) == ("in_progress", 0)
    assert 29 < float(caller.look(operation)["Retry-After"]) < 46
    assert jobs.runs == []


@pytest.mark.parametrize("code", ["circuit-open", "overloaded"])
def test_r33_a_breaker_that_opens_meanwhile_gives_the_attempt_back(
    caller: Caller, code: str
) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = [CallFailed("not now", code=code, retry_after=30)] * 5

    for _ in range(5):
        make_due(operation)
        assert isinstance(runner.run(), Free)
        assert (facts(operation)["state"], facts(operation)["attempts"]) == ("in_progress", 0)
        assert work_of(operation).cycle_attempts == 0
    assert run_out(operation)["attempts"] == 1


def test_r33_a_run_is_counted_before_its_handler_begins(caller: Caller) -> None:
    operation = caller.job()
    seen: list[int] = []

    def look(_: Claim) -> None:
        # On record for everybody, not only in this run's own transaction.
        thread = Thread(target=lambda: seen.append(_attempts_by_another(operation)))
        thread.start()
        thread.join()

    jobs.script = [look]
    runner.run()
    assert seen == [1]


def _attempts_by_another(operation_id: str) -> int:
    try:
        return work_of(operation_id).attempts
    finally:
        connection.close()


def test_r33_a_lost_lease_continues_the_cycle(caller: Caller) -> None:
    operation = caller.job()
    for begun in (1, 2, 3):
        make_due(operation)
        _die_in_the_run()
        assert facts(operation)["attempts"] == begun
        let_lapse(operation)
        reconciliation.run()
    assert facts(operation) == {
        "state": "completed",
        "attempts": 3,
        "result": None,
        "error": "gave-up",
    }
    assert Group.objects.count() == 0


def _die_in_the_run() -> None:
    """Leave the row as a worker does that is killed in its handler."""
    with phase(using="default") as phases:
        work = due.take(connection=phases.connection, leases={"test.job": 45, "test.transfer": 45})
        assert work is not None


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
def test_r33_an_orderly_stop_starts_a_new_cycle(caller: Caller, stop: type[BaseException]) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure(), TemporaryFailure(), stop()]
    for _ in range(2):
        make_due(operation)
        runner.run()
    make_due(operation)
    with pytest.raises(stop):
        runner.run()

    assert (work_of(operation).attempts, work_of(operation).cycle_attempts) == (3, 0)
    assert run_out(operation)["attempts"] == 4
    assert facts(operation)["state"] == "completed"


def test_r35_what_the_database_itself_undid_is_tried_again(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [OperationalError("deadlock detected")]

    assert run_out(operation)["attempts"] == 2
    assert facts(operation)["state"] == "completed"


class Unreadable:
    """Raises whatever is asked of it."""

    def __str__(self) -> str:
        raise RuntimeError("not even this")

    __html__ = isoformat = __str__


class Silent(Exception):
    """An error that cannot say what it is."""

    __str__ = Unreadable.__str__


def deep() -> list[Any]:
    """Return what is nested deeper than any reader goes."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize("result", [object, Unreadable, deep])
def test_r17_a_result_that_json_cannot_hold_is_done_all_the_same(
    caller: Caller, result: Callable[[], Any]
) -> None:
    operation = caller.job()
    jobs.script = [lambda _: {"it": result()}]

    assert run_out(operation)["state"] == "completed"
    assert caller.look(operation).json()["result"] is None
    assert Group.objects.count() == 1


def test_an_error_that_cannot_say_what_it_is_ends_the_work(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [Silent()]
    assert run_out(operation)["error"] == "gave-up"
    assert work_of(operation).last_error == "Silent"


FOREVER = 2**31


@pytest.mark.parametrize(
    ("word", "at_least", "at_most"),
    [
        (float("inf"), FOREVER, 1.5 * FOREVER),
        (1e30, FOREVER, 1.5 * FOREVER),
        (float("nan"), 0, 60),
        (-5, 0, 60),
        ("soon", 0, 60),
    ],
)
def test_r33_a_time_to_wait_that_is_none_keeps_nothing_off_the_record(
    caller: Caller, word: Any, at_least: float, at_most: float
) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure("busy", retry_after=word)]
    runner.run()
    due = key_of(operation).due_at
    assert due is not None
    assert at_least - 1 <= (due - timezone.now()).total_seconds() <= at_most
    assert caller.look(operation).status_code == 200


def test_r32_unknown_names_are_left_for_those_who_know_them(caller: Caller) -> None:
    operation = caller.job()
    work = work_of(operation)
    work.name = "test.of-tomorrow"
    work.save()

    assert runner.run() is None
    assert (key_of(operation).state, work_of(operation).attempts) == ("in_progress", 0)


def test_r36_an_ambiguous_run_is_unknown_and_found_applied(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = ["apply-and-lose"]
    runner.run()
    assert facts(operation)["state"] == "unknown"

    let_look_up()
    reconciliation.run()

    assert facts(operation)["state"] == "completed"
    assert facts(operation)["attempts"] == 1
    assert len(other_side.effects) == 1
    assert Group.objects.filter(name__endswith="-done").count() == 1
    assert Key.objects.get().settled_by == "reconciler"


def test_r36_an_ambiguous_run_that_was_not_applied_waits_again(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = ["lose"]
    runner.run()
    assert facts(operation)["state"] == "unknown"

    let_look_up()
    reconciliation.run()
    assert facts(operation)["state"] == "in_progress"
    assert run_out(operation)["attempts"] == 2
    assert len(other_side.effects) == 1
    assert len({key for key, _ in other_side.requests}) == 1


def test_r36_never_applied_gives_up_at_the_limit(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = ["lose"] * 5
    for _ in range(3):
        make_due(operation)
        runner.run()
        let_look_up()
        reconciliation.run()
    assert facts(operation) == {
        "state": "completed",
        "attempts": 3,
        "result": None,
        "error": "gave-up",
    }
    assert other_side.effects == []


def test_r14_an_error_after_an_applied_step_never_ends_the_work(caller: Caller) -> None:
    operation = caller.job({"then": 1}, path="/transfers/")
    jobs.script = [lambda _: None, ValueError("after the effect"), lambda _: None]
    runner.run()
    assert facts(operation)["state"] == "unknown"
    assert key_of(operation).unfinished

    let_look_up()
    reconciliation.run()

    assert facts(operation)["state"] == "completed"
    assert len(other_side.requests) == 1
