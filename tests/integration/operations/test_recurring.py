"""A host's own periodic task is watched like the ledger's."""

from collections.abc import Iterator

import pytest

from idempotency import telemetry
from idempotency.exceptions import Misuse
from idempotency.models import Heartbeat
from idempotency.operations import Recurring, heartbeat, recurring
from payments import tasks
from tests.support.factories import ago

pytestmark = pytest.mark.django_db


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Recurring:
    """Register a task for the length of a test."""
    monkeypatch.setattr(heartbeat, "_watched", dict(heartbeat._watched))
    return recurring("statements", every=lambda: 60, purpose="sends the statements")


@pytest.fixture
def turns() -> Iterator[list[tuple[str, str]]]:
    """Return the turns that are told."""
    kept: list[tuple[str, str]] = []
    end = telemetry.subscribe(
        telemetry.TurnEnded, lambda event: kept.append((event.task, event.result))
    )
    yield kept
    end()


def test_a_task_is_silent_until_it_succeeds_and_after_three_intervals(
    statements: Recurring, turns: list[tuple[str, str]]
) -> None:
    assert "statements" in heartbeat.silent()
    with pytest.raises(ZeroDivisionError), statements.turn():
        _ = 1 / 0
    assert "statements" in heartbeat.silent()
    with statements.turn() as detail:
        detail["sent"] = 3
    assert "statements" not in heartbeat.silent()
    assert turns == [("statements", "failed"), ("statements", "ok")]

    Heartbeat.objects.filter(name="statements").update(last_ok_at=ago(seconds=179))
    assert "statements" not in heartbeat.silent()
    Heartbeat.objects.filter(name="statements").update(last_ok_at=ago(seconds=181))
    assert "statements" in heartbeat.silent()


@pytest.mark.parametrize("name", ["wake", "beat", "", "x" * 51])
def test_a_name_that_is_taken_or_too_long_is_refused(name: str) -> None:
    with pytest.raises(Misuse, match="no name for a recurring task"):
        recurring(name, every=lambda: 1, purpose="does nothing")


def test_the_payments_that_are_followed_leave_their_mark() -> None:
    assert "follow-up" in heartbeat.silent()
    tasks.follow_up()
    assert "follow-up" not in heartbeat.silent()
