"""Work done in part is finished from the record, or by one more attempt; never from the beginning (R14, R36)."""

import uuid
from typing import Any

import pytest

from idempotency import operations, reconciliation
from idempotency.exceptions import CallFailed, TemporaryFailure
from idempotency.operations import runner
from tests.integration.operations.conftest import (
    Caller,
    key_of,
    let_look_up,
    make_due,
    work_of,
)
from tests.support.deferring import jobs
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


def reconcile() -> None:
    let_look_up()
    reconciliation.run()


def run(operation: str) -> None:
    make_due(operation)
    runner.run(key_id=key_of(operation).id)


def facts(operation: str) -> tuple[str, int, int]:
    return key_of(operation).state, work_of(operation).attempts, len(other_side.effects)


def result_of(operation: str) -> dict[str, Any]:
    result: dict[str, Any] = work_of(operation).result or {}
    return result


@pytest.mark.parametrize("swallow", [False, True])
def test_r33_what_the_record_does_not_hold_takes_one_more_attempt(
    caller: Caller, nudges: list[Any], swallow: bool
) -> None:
    operation = caller.job({"swallow": swallow}, path="/two-steps/")
    other_side.script = ["apply", "lose"]
    run(operation)
    assert facts(operation) == ("unknown", 1, 1)

    nudges.clear()
    reconcile()
    # The reconciler sends nothing itself.
    assert facts(operation) == ("in_progress", 1, 1)
    assert nudges == [(str(key_of(operation).id),)]
    assert len(other_side.requests) == 2

    run(operation)
    assert facts(operation) == ("completed", 2, 2)
    assert result_of(operation)["reference"] is not None
    assert len({key for key, _ in other_side.requests}) == 2


def test_r36_all_steps_applied_is_finished_without_an_attempt(caller: Caller) -> None:
    operation = caller.job({}, path="/two-steps/")
    other_side.script = ["apply", "apply-and-lose"]
    run(operation)
    reconcile()

    assert facts(operation) == ("completed", 1, 2)
    assert len(other_side.requests) == 2
    assert result_of(operation)["reference"] is not None


def test_r14_a_passing_failure_after_an_applied_step_is_unknown_first(caller: Caller) -> None:
    operation = caller.job({}, path="/two-steps/")
    other_side.script = ["apply", CallFailed("not now")]
    run(operation)
    assert facts(operation) == ("unknown", 1, 1)
    assert key_of(operation).unfinished

    reconcile()
    run(operation)
    assert facts(operation) == ("completed", 2, 2)


def test_r36_done_in_part_with_no_attempt_left_needs_a_person(caller: Caller) -> None:
    operation = caller.job({}, path="/two-steps/")
    other_side.script = ["apply", "lose", "lose", "lose"]
    for begun in (1, 2, 3):
        run(operation)
        assert facts(operation) == ("unknown", begun, 1)
        reconcile()

    assert facts(operation) == ("unknown", 3, 1)
    assert key_of(operation).needs_person_reason == (
        "No attempt is left, and the work is done only in part."
    )
    assert work_of(operation).error is None

    operations.retry(operation_id=uuid.UUID(operation), actor="olga", reason="It is up again.")
    other_side.script = ["apply"]
    run(operation)
    assert facts(operation) == ("completed", 4, 2)


def test_r36_what_cannot_be_finished_needs_a_person(caller: Caller) -> None:
    operation = caller.job({}, path="/two-steps/")
    other_side.script = ["apply", "apply-and-lose"]
    run(operation)
    jobs.script = [ValueError("a bug")]
    reconcile()

    assert facts(operation) == ("unknown", 1, 2)
    assert key_of(operation).needs_person_reason == "It cannot be finished: ValueError: a bug"


def test_r36_a_passing_trouble_while_finishing_is_tried_again(caller: Caller) -> None:
    operation = caller.job({}, path="/two-steps/")
    other_side.script = ["apply", "apply-and-lose"]
    run(operation)
    jobs.script = [TemporaryFailure("the database is busy")]
    reconcile()
    assert key_of(operation).needs_person_since is None

    reconcile()
    assert facts(operation) == ("completed", 1, 2)
