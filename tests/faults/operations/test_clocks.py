"""Hosts whose clocks are wrong by hours: only the database's clock, and those that nobody sets, decide anything."""

import pytest

from tests.faults.operations.conftest import key_of, marks, promise, work_of
from tests.support.stack import Stack
from tests.support.wrongclock import off

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
HOURS = 5 * 3600


@pytest.mark.parametrize(
    ("worker", "beat"),
    [(HOURS, 0), (0, -HOURS)],
    ids=["worker ahead", "beat behind"],
)
def test_work_is_done_once_by_whatever_clocks(stack: Stack, worker: int, beat: int) -> None:
    """Celery compares `expires` of a message with the worker's clock: such a worker dropped everything."""
    operations = [promise("poison.mark") for _ in range(3)]
    stack.start("worker", environment=off(worker))
    stack.start("beat", environment=off(beat))
    stack.wait_until(
        lambda: {key_of(each).state for each in operations} == {"completed"},
        "the work is done",
        seconds=30,
    )
    assert [(work_of(each).attempts, marks(key_of(each).id)) for each in operations] == [(1, 1)] * 3
