"""R27: one suite for both state machines: this process's, and the shared one on both real stores.

The shared machine keeps the store's time, so durations are short and really pass; the local one's
clock is moved by hand.
"""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from idempotency.resilience import BreakerSettings, BreakerState, Force, SharedStore, Vote
from idempotency.resilience.breakerlocal import LocalMachine
from idempotency.resilience.breakershared import SharedMachine
from idempotency.resilience.breakerstate import Change, Decision, Machine
from project.embedded.store import Store
from tests.support.faketime import FakeTime

SUCCESS, FAILURE, NO_VOTE = Vote.SUCCESS, Vote.FAILURE, Vote.NONE
SETTINGS = BreakerSettings(
    window=1.0, min_calls=4, ratio=0.5, open_seconds=0.1, probes=2, successes=2, lease=0.5
)


@dataclass
class Subject:
    """A machine, and how its time passes."""

    make: Callable[[BreakerSettings], Machine]
    pass_: Callable[[float], None]

    def __post_init__(self) -> None:
        self.machine = self.make(SETTINGS)

    def ask(self) -> tuple[str, Decision]:
        token = uuid.uuid4().hex
        return token, self.machine.acquire(token)

    def call(self, vote: Vote) -> Change:
        token, decision = self.ask()
        assert decision.allowed
        return self.machine.record(token, decision.generation, vote)

    @property
    def state(self) -> BreakerState:
        return self.machine.snapshot().state

    def trip(self) -> None:
        for _ in range(SETTINGS.min_calls):
            self.call(FAILURE)
        assert self.state is BreakerState.OPEN

    def half_open(self) -> None:
        self.trip()
        self.pass_(SETTINGS.open_seconds * 1.2)


@pytest.fixture(params=["local", "valkey", "real_redis"])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "local":
        time = FakeTime(now=0.0)
        return Subject(lambda settings: LocalMachine(settings, time.clock), time.pass_)
    server: Store = request.getfixturevalue(request.param)
    store, name = SharedStore.connect(server.url, timeout=2.0), uuid.uuid4().hex
    return Subject(lambda settings: SharedMachine(name, settings, store), really_pass)


def really_pass(seconds: float) -> None:
    threading.Event().wait(seconds)


def test_r27_it_opens_at_the_ratio_and_not_before_the_minimum_of_calls(subject: Subject) -> None:
    for _ in range(3):
        assert subject.call(FAILURE).after is BreakerState.CLOSED
    assert subject.call(FAILURE) == Change(BreakerState.CLOSED, BreakerState.OPEN, "failures")
    _, refused = subject.ask()
    assert not refused.allowed
    assert 0 < refused.retry_after <= SETTINGS.open_seconds


def test_r27_it_stays_closed_below_the_ratio(subject: Subject) -> None:
    for _ in range(5):
        subject.call(SUCCESS)
    for _ in range(4):
        subject.call(FAILURE)
    assert subject.state is BreakerState.CLOSED
    assert subject.call(FAILURE).after is BreakerState.OPEN


def test_r27_only_the_window_counts(subject: Subject) -> None:
    for _ in range(3):
        subject.call(FAILURE)
    subject.pass_(SETTINGS.window * 1.2)
    assert subject.call(FAILURE).after is BreakerState.CLOSED
    seen = subject.machine.snapshot()
    assert (seen.calls, seen.failures) == (1, 1)


def test_r27_a_cancellation_has_no_vote(subject: Subject) -> None:
    for _ in range(10):
        subject.call(NO_VOTE)
    assert subject.machine.snapshot().calls == 0


def test_r27_only_so_many_probes_are_let_through(subject: Subject) -> None:
    subject.half_open()
    asked = [subject.ask() for _ in range(10)]
    assert sum(decision.allowed for _, decision in asked) == SETTINGS.probes
    assert asked[0][1].change == Change(BreakerState.OPEN, BreakerState.HALF_OPEN, "timer")
    assert all(d.change.before is d.change.after for _, d in asked[1:])
    assert asked[-1][1].retry_after > 0
    assert subject.machine.snapshot().probes == SETTINGS.probes


def test_r27_enough_successes_close_it(subject: Subject) -> None:
    subject.half_open()
    assert subject.call(SUCCESS).after is BreakerState.HALF_OPEN
    closed = subject.call(SUCCESS)
    assert closed == Change(BreakerState.HALF_OPEN, BreakerState.CLOSED, "probes-succeeded")
    assert subject.machine.snapshot().calls == 0


def test_r27_a_failed_probe_opens_it_again_with_a_new_time(subject: Subject) -> None:
    subject.half_open()
    (late, first), (token, second) = subject.ask(), subject.ask()
    opened = subject.machine.record(token, second.generation, FAILURE)
    assert opened == Change(BreakerState.HALF_OPEN, BreakerState.OPEN, "probe-failed")
    assert subject.machine.snapshot().open_for > 0
    # The other probe of that time has no say any more.
    subject.machine.record(late, first.generation, SUCCESS)
    assert subject.state is BreakerState.OPEN


def test_r27_h7_being_asked_while_open_does_not_put_off_the_probes(subject: Subject) -> None:
    subject.trip()
    asked = 0
    while not subject.ask()[1].allowed:
        subject.pass_(SETTINGS.open_seconds / 5)
        asked += 1
        assert asked < 8
    assert asked >= 1


def test_r27_a_dead_probe_frees_its_place_when_its_lease_ends(subject: Subject) -> None:
    subject.half_open()
    (dead, first), _ = subject.ask(), subject.ask()
    assert not subject.ask()[1].allowed
    subject.pass_(SETTINGS.lease * 1.2)
    assert subject.ask()[1].allowed
    # It was only slow: its word no longer counts.
    subject.machine.record(dead, first.generation, FAILURE)
    assert subject.state is BreakerState.HALF_OPEN


def test_r27_a_probe_that_answers_after_its_lease_has_no_vote(subject: Subject) -> None:
    subject.half_open()
    token, late = subject.ask()
    subject.pass_(SETTINGS.lease * 1.2)
    subject.machine.record(token, late.generation, FAILURE)
    assert subject.state is BreakerState.HALF_OPEN


def test_r27_probes_of_an_earlier_half_open_take_no_places(subject: Subject) -> None:
    subject.half_open()
    (token, first), _ = subject.ask(), subject.ask()
    subject.machine.record(token, first.generation, FAILURE)
    subject.pass_(SETTINGS.open_seconds * 1.2)
    assert [subject.ask()[1].allowed for _ in range(3)] == [True, True, False]


def test_r27_a_cancelled_probe_frees_its_place_without_a_vote(subject: Subject) -> None:
    subject.half_open()
    for _ in range(10):
        subject.call(NO_VOTE)
    assert subject.state is BreakerState.HALF_OPEN
    assert subject.machine.snapshot().probes == 0


def test_r27_a_late_answer_of_an_earlier_era_does_not_vote(subject: Subject) -> None:
    calls = [subject.ask() for _ in range(8)]
    subject.half_open()
    for token, decision in calls:
        subject.machine.record(token, decision.generation, FAILURE)
    assert subject.machine.snapshot().state is BreakerState.OPEN
    subject.call(SUCCESS)
    subject.call(SUCCESS)
    for token, decision in calls:
        subject.machine.record(token, decision.generation, FAILURE)
    assert subject.state is BreakerState.CLOSED
    assert subject.machine.snapshot().calls == 0


@pytest.mark.parametrize("vote", [SUCCESS, FAILURE])
def test_r27_a_probe_of_an_earlier_half_open_does_not_vote(subject: Subject, vote: Vote) -> None:
    subject.half_open()
    token, early = subject.ask()
    subject.call(FAILURE)
    subject.pass_(SETTINGS.open_seconds * 1.2)
    assert subject.ask()[1].allowed
    subject.machine.record(token, early.generation, vote)
    seen = subject.machine.snapshot()
    assert (seen.state, seen.probes) == (BreakerState.HALF_OPEN, 1)


def test_r27_staff_hold_it_open_and_closed_and_clear_it(subject: Subject) -> None:
    machine = subject.machine
    forced = machine.force(Force.OPEN, actor="ops", reason="gateway maintenance")
    assert forced == Change(BreakerState.CLOSED, BreakerState.FORCED_OPEN, "staff")
    subject.pass_(SETTINGS.open_seconds * 1.2)
    refused = subject.ask()[1]
    assert not refused.allowed
    assert refused.retry_after == pytest.approx(SETTINGS.open_seconds)
    seen = machine.snapshot()
    assert (seen.state, seen.actor, seen.reason) == (
        BreakerState.FORCED_OPEN,
        "ops",
        "gateway maintenance",
    )

    machine.force(Force.CLOSED, actor="ops", reason="it works, whatever it says")
    for _ in range(10):
        subject.call(FAILURE)
    assert subject.state is BreakerState.FORCED_CLOSED

    cleared = machine.force(Force.CLEAR, actor="ops", reason="over")
    assert cleared == Change(BreakerState.FORCED_CLOSED, BreakerState.CLOSED, "staff")
    seen = machine.snapshot()
    assert (seen.actor, seen.reason, seen.calls) == ("", "", 0)
    subject.trip()


def test_r27_both_machines_agree_on_one_long_story(subject: Subject) -> None:
    """Written down once for the local machine; the shared one has to tell the same."""
    story = [subject.call(vote).after for vote in (FAILURE, SUCCESS, FAILURE)]
    story.append(subject.call(SUCCESS).after)
    subject.pass_(SETTINGS.open_seconds * 1.2)
    story.append(subject.call(SUCCESS).after)
    story.append(subject.call(FAILURE).after)
    subject.pass_(SETTINGS.open_seconds * 1.2)
    story += [subject.call(SUCCESS).after for _ in range(3)]
    closed, half_open, opened = BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN
    assert story == [*[closed] * 3, opened, half_open, opened, half_open, closed, closed]


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"open_seconds": -1},
        {"lease": float("nan")},
        {"min_calls": 0},
        {"probes": 0},
        {"successes": 0},
        {"ratio": 0},
        {"ratio": 1.1},
    ],
    ids=str,
)
def test_r27_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(SETTINGS, **wrong)  # type: ignore[arg-type]
