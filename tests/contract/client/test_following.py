"""Deferred work is followed to its end."""

import pytest

from idempotency.client import (
    Operation,
    StillOpen,
)
from idempotency.exceptions import CallRejected
from tests.contract.client.calling import BUSY, Make, pay
from tests.support.faultserver import serving
from tests.support.scripted import Line, Script, keys, lost, problem


def test_deferred_work_is_followed_to_its_end(make: Make) -> None:
    at = {"operation": "payouts.create", "attempts": 1, "id": "op1"}
    promised: Line = (202, at | {"state": "in_progress", "done": False}, "Location: /op/1/\r\n")
    waits: Line = (200, at | {"state": "in_progress", "done": False}, "Retry-After: 7\r\n")
    done: Line = (200, at | {"state": "completed", "done": True, "result": {"id": "po_1"}})
    with serving(Script(promised, waits, BUSY, waits, done)) as server:
        caller = make(server)
        seen: list[Operation] = []
        operation = caller.follow(pay(caller), progress=seen.append)
    assert (operation.done, operation.result) == (True, {"id": "po_1"})
    assert [each.done for each in seen] == [False, False, True]
    assert caller.time.waits == [7.0, 3.0, 7.0]
    assert server.requests[1].startswith(b"GET /op/1/")
    assert len(keys(server)) == 1, "a look has no key"


def test_work_that_goes_on_past_the_deadline_is_still_open(make: Make) -> None:
    at = {"operation": "o", "attempts": 1, "id": "op1", "state": "in_progress", "done": False}
    with serving(Script((202, at, "Location: /op/1/\r\n"), (200, at, "Retry-After: 7\r\n"))) as it:
        caller = make(it)
        with pytest.raises(StillOpen):
            caller.follow(pay(caller), deadline=20)
    assert caller.time.waits == [7.0, 7.0]


def test_a_monitor_that_shows_nothing_says_why(make: Make) -> None:
    gone = problem(410, "result-expired", detail="It is forgotten.")
    with serving(Script((202, {}, "Location: /op/1/\r\n"), gone)) as server:
        caller = make(server)
        with pytest.raises(CallRejected) as caught:
            caller.follow(pay(caller))
    assert caught.value.code == "result-expired"


@pytest.mark.parametrize(
    "line",
    [lost, (500, {}), (503, {"no": "code"}), (200, {"another": "answer"}), BUSY],
)
def test_a_look_that_is_not_answered_says_nothing_of_the_work(make: Make, line: Line) -> None:
    """Told as "certainly nothing happened", it would be done again under another key."""
    with serving(Script((202, {}, "Location: /op/1/\r\n"), line)) as server:
        caller = make(server)
        with pytest.raises(StillOpen) as caught:
            caller.follow(pay(caller))
    assert "/op/1/" in caught.value.detail


def test_work_of_a_server_that_is_away_goes_on(make: Make) -> None:
    with serving(Script((202, {}, "Location: /op/1/\r\n"))) as server:
        caller = make(server)
        promised = pay(caller)
    with pytest.raises(StillOpen):
        caller.follow(promised)
