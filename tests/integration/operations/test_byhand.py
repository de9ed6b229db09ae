"""What a person may do about deferred work: a retry starts a cycle (R33), a cancellation ends what waits (R34)."""

import uuid
from typing import Any

import pytest

from idempotency import operations
from idempotency.exceptions import TemporaryFailure
from idempotency.models import Event
from idempotency.operations import runner
from idempotency.types import State
from tests.integration.operations.conftest import Caller, key_of, make_due, work_of
from tests.support.deferring import jobs
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)

WHO: dict[str, Any] = {"actor": "olga", "reason": "The gateway is back, ticket 17."}


def give_up(caller: Caller) -> str:
    """Promise work and let it be given up after three runs."""
    operation = caller.job()
    jobs.script = [TemporaryFailure() for _ in range(3)]
    for _ in range(3):
        make_due()
        runner.run()
    error = work_of(operation).error
    assert error is not None
    assert error["code"] == "gave-up"
    return operation


def test_r33_what_was_given_up_begins_a_new_cycle(
    caller: Caller, nudges: list[tuple[str, ...]]
) -> None:
    operation = give_up(caller)
    nudges.clear()
    operations.retry(operation_id=uuid.UUID(operation), **WHO)
    assert nudges == [(str(key_of(operation).id),)]
    work = work_of(operation)
    assert (work.attempts, work.cycle_attempts, work.error) == (3, 0, None)
    runner.run()
    assert caller.look(operation).json()["result"] == {"did": 1}
    assert work_of(operation).attempts == 4
    event = Event.objects.get(kind="retried")
    assert (event.actor, event.reason, event.key_id) == (
        "olga",
        WHO["reason"],
        key_of(operation).id,
    )


def test_r33_what_waits_for_its_next_run_begins_at_once(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure(retry_after=600)]
    runner.run()
    assert runner.run() is None
    operations.retry(operation_id=uuid.UUID(operation), **WHO)
    runner.run()
    assert key_of(operation).state == State.COMPLETED


def test_what_succeeded_or_was_cancelled_does_not_begin_again(caller: Caller) -> None:
    done, cancelled = caller.job(), caller.job()
    operations.cancel(operation_id=uuid.UUID(cancelled), **WHO)
    runner.run()
    for operation in (done, cancelled):
        with pytest.raises(operations.NotNow):
            operations.retry(operation_id=uuid.UUID(operation), **WHO)
        assert key_of(operation).state == State.COMPLETED
    assert not Event.objects.filter(kind="retried").exists()


def test_two_people_begin_it_again_once(caller: Caller) -> None:
    operation = give_up(caller)
    for _ in range(2):
        operations.retry(operation_id=uuid.UUID(operation), **WHO)
    runner.run()
    assert runner.run() is None
    assert work_of(operation).attempts == 4


def test_what_happened_in_part_begins_again_from_the_record(caller: Caller) -> None:
    operation = caller.job({"then": True}, path="/transfers/")
    jobs.script = [lambda _: None, RuntimeError("after the call")]
    runner.run()
    assert key_of(operation).state == "unknown"
    operations.retry(operation_id=uuid.UUID(operation), **WHO)
    runner.run()
    assert key_of(operation).state == "completed"
    assert (len(other_side.requests), len(other_side.effects)) == (1, 1)


def test_while_a_step_may_have_happened_nothing_begins_again(caller: Caller) -> None:
    operation = caller.job({}, path="/transfers/")
    other_side.script = ["apply-and-lose"]
    runner.run()
    with pytest.raises(operations.NotNow):
        operations.retry(operation_id=uuid.UUID(operation), **WHO)
    assert key_of(operation).state == "unknown"


def test_r34_cancelling_twice_is_a_success_under_the_first_name(caller: Caller) -> None:
    operation = caller.job()
    for _ in range(2):
        operations.cancel(operation_id=uuid.UUID(operation), **WHO)
    assert caller.look(operation).json()["error"]["code"] == "cancelled"
    assert key_of(operation).settled_by == "olga"
    assert Event.objects.filter(kind="cancelled").first() is not None


def test_r34_what_is_over_is_too_late_to_cancel(caller: Caller) -> None:
    operation = caller.job()
    runner.run()
    with pytest.raises(operations.NotNow, match="Too late"):
        operations.cancel(operation_id=uuid.UUID(operation), **WHO)


def test_unknown_work_is_said_to_be_gone() -> None:
    with pytest.raises(operations.NotNow, match="no such work"):
        operations.retry(operation_id=uuid.uuid4(), **WHO)
