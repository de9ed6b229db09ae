"""R24, R25: a conflict re-runs the whole unit of work, never a statement."""

import django.db.utils
import psycopg.errors
import pytest

from idempotency.exceptions import OptimisticConflict
from idempotency.resilience import (
    Deadline,
    RetryPolicy,
    deadline_scope,
    is_conflict,
    retry_transaction,
    sqlstate,
)
from tests.support.faketime import FakeTime


class Unit:
    """A unit of work that meets one error after another, and counts its runs."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.runs = list(errors), 0

    def __call__(self) -> int:
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.runs


def through_django(error: psycopg.Error) -> django.db.utils.OperationalError:
    wrapped = django.db.utils.OperationalError("no")
    wrapped.__cause__ = error
    return wrapped


CONFLICTS = [
    psycopg.errors.SerializationFailure("no"),
    psycopg.errors.DeadlockDetected("no"),
    through_django(psycopg.errors.SerializationFailure("no")),
    OptimisticConflict("changed"),
]


@pytest.mark.parametrize("conflict", CONFLICTS, ids=repr)
def test_r24_a_conflict_runs_the_unit_again_from_its_beginning(conflict: Exception) -> None:
    time = FakeTime()
    unit = Unit(conflict, conflict)
    assert retry_transaction(unit, clock=time.clock) == 3
    assert len(time.waits) == 2


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.UniqueViolation("no"),
        psycopg.errors.LockNotAvailable("no"),
        psycopg.errors.StatementCompletionUnknown("no"),
        psycopg.OperationalError("server closed the connection unexpectedly"),
        ValueError("no"),
    ],
    ids=repr,
)
def test_r35_anything_else_and_a_broken_commit_above_all_is_never_repeated(
    error: Exception,
) -> None:
    unit = Unit(error)
    with pytest.raises(type(error)):
        retry_transaction(unit, clock=FakeTime().clock)
    assert unit.runs == 1


def test_r25_attempts_count_the_first_and_the_last_conflict_is_raised() -> None:
    unit = Unit(*[OptimisticConflict(str(n)) for n in range(9)])
    with pytest.raises(OptimisticConflict, match="2"):
        retry_transaction(unit, policy=RetryPolicy(attempts=3), clock=FakeTime().clock)
    assert unit.runs == 3


def test_r25_no_pause_reaches_beyond_the_deadline() -> None:
    time = FakeTime()
    unit = Unit(*[OptimisticConflict("no")] * 9)
    policy = RetryPolicy(attempts=9, base=1, cap=1, reserve=0.1)
    with deadline_scope(Deadline.after(1.0, time.clock)), pytest.raises(OptimisticConflict):
        retry_transaction(unit, policy=policy, clock=time.clock)
    assert sum(time.waits) < 0.9


def test_r24_only_a_stated_cause_is_a_conflict() -> None:
    while_handling = ValueError("a bug in the handler of the conflict")
    while_handling.__context__ = OptimisticConflict("no")
    assert not is_conflict(while_handling)
    assert is_conflict(CONFLICTS[2])
    assert sqlstate(CONFLICTS[2]) == "40001"
    assert sqlstate(ValueError("no")) is None
