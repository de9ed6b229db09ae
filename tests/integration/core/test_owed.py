"""A call ends while the database is gone, and its process lives on: its word is not lost (R19, R22)."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import transaction

from idempotency import reconciliation
from idempotency.clock import Clock
from idempotency.exceptions import CallFailed, CallRejected, Misuse
from idempotency.ledger import owed
from idempotency.ledger.journal import OpenSender, StepEnding
from idempotency.models import Event, Key, Sender
from idempotency.operations import inbox, runner
from idempotency.testing import pass_time
from idempotency.types import Absent, Ending
from tests.integration.core.conftest import Caller
from tests.support.databases import login
from tests.support.host import other_side
from tests.support.outage import Outage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outage() -> Iterator[Outage]:
    outage = Outage()
    yield outage
    outage.end()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> "Hand":
    """Give this process nothing that it owes, and a clock that the test moves."""
    hand = Hand()
    owing = owed.Owing(clock=Clock(now=lambda: hand.at))
    monkeypatch.setattr("idempotency.execution.owe", owing.owe)
    monkeypatch.setattr("idempotency.ledger.owed.pay", owing.pay)
    return hand


class Hand:
    at = 1_000.0


def lose_the_word(caller: Caller, outage: Outage, key: str, ends: Any, *, path: str) -> Any:
    """Charge; the database goes while the call is under way, and comes back when its caller has been told."""

    def does() -> None:
        outage.begin()
        if isinstance(ends, BaseException):
            raise ends

    other_side.script.append(does)
    answer = caller.post(path, {"name": "a"}, key=key)
    outage.end()
    return answer


def let_lapse() -> None:
    pass_time(100)
    reconciliation.run()
    pass_time(100)
    reconciliation.run()


ENDS = [
    (None, "applied", "completed", 201),
    (CallRejected("no", code="card_declined"), "rejected", "completed", 409),
    (CallFailed("down"), "not_sent", "released", 201),
]


@pytest.mark.parametrize("path", ["/charge/", "/charge-unkeyed/"])
@pytest.mark.parametrize(("ends", "ending", "state", "status"), ENDS)
def test_r19_the_next_request_writes_it(
    caller: Caller,
    outage: Outage,
    key: str,
    path: str,
    ends: Any,
    ending: str,
    state: str,
    status: int,
) -> None:
    answer = lose_the_word(caller, outage, key, ends, path=path)
    assert (answer.status_code, answer.json()["code"]) == (504, "outcome-unknown")
    assert Sender.objects.get().ending is None

    assert caller.post("/local/", {"name": "other"}, key="another").status_code == 201

    assert Sender.objects.get().ending == ending
    let_lapse()
    row = Key.objects.get(key=key)
    assert (row.state, row.needs_person_since) == (state, None)
    assert caller.post(path, {"name": "a"}, key=key).status_code == status
    assert len(other_side.effects) == (1 if status == 201 else 0)


def test_r14_an_applied_step_that_came_late_leaves_the_rest_to_the_next_repeat(
    caller: Caller, outage: Outage, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_word(caller, outage, key, None, path="/charge/")
    with monkeypatch.context() as unpaid:
        unpaid.setattr("idempotency.ledger.owed.pay", lambda: None)
        pass_time(100)
        other_side.lookup = CallFailed("down")
        reconciliation.run()
        assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 409
    in_a_message()
    assert Key.objects.get(key=key).unfinished
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert (len(other_side.requests), other_side.looked_up) == (1, 1)


def test_r19_without_it_an_unkeyed_side_needs_a_person(
    caller: Caller, outage: Outage, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is for: the process lives, so that nothing but its own word can tell."""
    monkeypatch.setattr("idempotency.execution.owe", lambda owed: None)
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge-unkeyed/")
    let_lapse()
    row = Key.objects.get(key=key)
    assert (row.state, row.needs_person_since is None) == ("unknown", False)


def in_a_message() -> None:
    with inbox.consume("bank", "m-1", operation="test.message"):
        pass


@pytest.mark.parametrize("work", [runner.run, reconciliation.run, in_a_message])
def test_r19_so_does_whatever_this_process_does_next(
    caller: Caller, outage: Outage, key: str, work: Callable[[], object]
) -> None:
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge-unkeyed/")
    work()
    assert Sender.objects.get().ending == "not_sent"


def test_r19_while_the_database_is_gone_it_is_tried_once_a_second(
    caller: Caller, outage: Outage, key: str, clock: Hand
) -> None:
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge/")
    outage.begin()
    assert caller.post("/local/", {"name": "b"}, key="b").status_code == 503
    outage.end()
    assert caller.post("/local/", {"name": "b"}, key="b").status_code == 201
    assert Sender.objects.get().ending is None
    clock.at += 1
    assert caller.post("/keyless/").status_code == 201
    assert Sender.objects.get().ending == "not_sent"


def test_r19_a_key_that_somebody_else_writes_is_waited_for_briefly(
    caller: Caller, outage: Outage, key: str, clock: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owed, "_LOCKS", "20ms")
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge/")
    with psycopg.connect(**login()) as holds:
        holds.execute("SELECT 1 FROM idempotency_key FOR UPDATE")
        assert caller.post("/keyless/").status_code == 201
        assert Sender.objects.get().ending is None
    clock.at += 1
    caller.post("/keyless/")
    assert Sender.objects.get().ending == "not_sent"


def test_r19_a_server_that_takes_no_writes_loses_none(
    caller: Caller, outage: Outage, key: str, clock: Hand
) -> None:
    """PostgreSQL says so by an internal error, not by an operational one."""
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge-unkeyed/")
    with outage.read_only():
        assert caller.post("/local/", {"name": "b"}, key="b").status_code == 503
    clock.at += 1
    caller.post("/keyless/")
    assert Sender.objects.get().ending == "not_sent"


def test_r19_none_is_lost_to_a_hosts_open_transaction(
    caller: Caller, outage: Outage, key: str
) -> None:
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge-unkeyed/")
    with transaction.atomic(), pytest.raises(Misuse):
        in_a_message()
    in_a_message()
    assert Sender.objects.get().ending == "not_sent"


def test_r19_none_is_lost_to_a_process_that_is_told_to_stop_and_goes_on(
    caller: Caller, outage: Outage, key: str, clock: Hand
) -> None:
    """A time limit or a worker's shutdown raises wherever the thread is: here while it waits for a lock."""
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge-unkeyed/")
    before = signal.signal(signal.SIGALRM, lambda *_: sys.exit())
    try:
        with psycopg.connect(**login()) as holds:
            holds.execute("SELECT 1 FROM idempotency_key FOR UPDATE")
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(SystemExit):
                in_a_message()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    clock.at += 1
    in_a_message()
    assert Sender.objects.get().ending == "not_sent"


def test_r39_what_it_proves_of_a_key_that_was_released_meanwhile_is_late_news(
    caller: Caller, outage: Outage, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side says that nothing is there, and the process comes back to say that there is."""
    lose_the_word(caller, outage, key, None, path="/charge/")
    other_side.lookup = Absent()
    with monkeypatch.context() as unpaid:
        unpaid.setattr("idempotency.ledger.owed.pay", lambda: None)
        let_lapse()
    row = Key.objects.get()
    assert (row.state, row.watched) == ("released", True)
    in_a_message()
    assert Sender.objects.get().ending == "applied"
    assert Event.objects.filter(key_id=row.id, kind="late-news").count() == 1


def test_r19_a_process_that_ends_in_good_order_writes_it_before(
    caller: Caller,
    outage: Outage,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
    stack_database_url: str,
) -> None:
    """Its death might be on a machine of which nobody here can prove it."""
    kept: list[owed.Owed] = []
    monkeypatch.setattr("idempotency.execution.owe", kept.append)
    lose_the_word(caller, outage, key, CallFailed("down"), path="/charge-unkeyed/")
    code = "import django, pickle, sys; django.setup(); from idempotency.ledger import owed; "
    code += "owed.owe(pickle.load(sys.stdin.buffer))"
    environment = os.environ | {"DATABASE_URL": stack_database_url, "DEBUG": "1"}
    environment |= {"DJANGO_SETTINGS_MODULE": "project.settings"}
    subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(kept[0]), env=environment, check=True
    )
    assert Sender.objects.get().ending == "not_sent"


def test_what_can_never_be_written_is_dropped_and_logged(
    caller: Caller, outage: Outage, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    owing = owed.Owing()
    sender = OpenSender(1, 1, "key", b"", keyed=True)
    row_id = "not an id"
    owing.owe(owed.Owed(row_id, 1, sender, StepEnding(Ending.NOT_SENT, 0)))  # type: ignore[arg-type]
    owing.pay()
    assert "cannot be written" in caplog.text
    caplog.clear()
    owing.pay()
    assert not caplog.records


def test_the_log_says_what_only_this_process_knows(
    caller: Caller, outage: Outage, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    lose_the_word(caller, outage, key, None, path="/charge/")
    reference = f"ref-{other_side.effects[0][:8]}"
    assert [r.levelname for r in caplog.records if reference in r.getMessage()] == ["ERROR"]


def test_a_child_process_owes_nothing_of_its_parents() -> None:
    owing = owed.Owing()
    owing.owe(
        owed.Owed(None, 1, OpenSender(1, 1, "", b"", keyed=True), StepEnding(Ending.NOT_SENT, 0))  # type: ignore[arg-type]
    )
    owing._paying.acquire()
    owing.forget()
    assert owing._paying.acquire(blocking=False)
    assert not owing._owed
