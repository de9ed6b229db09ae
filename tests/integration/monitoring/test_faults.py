"""For each fault: the alert that fires, no other one, how soon; what the overview shows; where the runbook leads."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.db import OperationalError

from idempotency import telemetry
from idempotency.ledger import census
from idempotency.models import Heartbeat
from idempotency.operations import news
from idempotency.resilience import CircuitBreaker, Force, ReadOnlySwitch, Vote
from idempotency.telemetry import emit
from idempotency.types import State
from tests.integration.monitoring.conftest import everything_beats, scrape
from tests.support.alerting import ROOT, fires_after
from tests.support.factories import ago, make_key, make_waiting

NOBODY = ""
RUNBOOK = (ROOT / "docs" / "alerts.md").read_text()


@dataclass(frozen=True)
class Fault:
    """What is done, which alerts fire within how many seconds, what the overview shows, where the runbook leads."""

    cause: Callable[[], object]
    alerts: set[str]
    within: float
    shown: str
    leads: str


def silence(*names: str) -> Callable[[], object]:
    return lambda: Heartbeat.objects.filter(name__in=names).update(last_ok_at=ago(hours=1))


def unknown(**age: float) -> Callable[[], object]:
    return lambda: make_key(state=State.UNKNOWN, at=ago(**age))


def needs_person() -> None:
    make_key(state=State.UNKNOWN, at=ago(seconds=30), needs_person_since=ago(seconds=5))


def late_news() -> None:
    key = make_key(state=State.RELEASED)
    news.late_news(key_id=key.pk, actor="event", detail={"gateway_reference": "pi_1"})


def repeated(event: telemetry.Event, times: int = 20) -> Callable[[], object]:
    def cause() -> None:
        for _ in range(times):
            emit(event)

    return cause


FAULTS = {
    "beat is dead": Fault(
        silence("beat", "broker", "wake", "reconcile"),
        {"IdempotencyBeatSilent"},
        15,
        "beat keeps the time of all the others late",
        "its log says why it ended",
    ),
    "the broker takes nothing": Fault(
        silence("broker", "wake", "reconcile"),
        {"IdempotencyBrokerSilent"},
        15,
        "broker takes beat's messages to the workers late",
        "ping the broker from beat's host",
    ),
    "the workers are dead, frozen or idle": Fault(
        silence("wake", "reconcile"),
        {"IdempotencyWorkersSilent"},
        15,
        "wake starts deferred work that is due late",
        "Does a worker process exist?",
    ),
    "a schedule never fires": Fault(
        lambda: Heartbeat.objects.filter(name="reconcile").delete(),
        {"IdempotencyTaskSilent"},
        15,
        "reconcile looks up what nobody knows yet late never",
        "is it in beat's schedule",
    ),
    "the host's own task is silent": Fault(
        silence("follow-up"),
        {"IdempotencyHostTaskSilent"},
        15,
        "follow-up asks the gateway about what it had not decided yet late",
        "is it in beat's schedule",
    ),
    "nothing is purged": Fault(
        silence("purge"),
        {"IdempotencyPurgeSilent"},
        1800,
        "purge forgets what has expired late",
        "idempotency_purge",
    ),
    "a key is unknown for too long": Fault(
        unknown(minutes=10),
        {"IdempotencyUnknownTooLong"},
        60,
        "1 Unknown oldest 9 min",
        "runbook.md#unknown",
    ),
    "a key needs a person": Fault(
        needs_person,
        {"IdempotencyPersonNeeded"},
        60,
        "1 Need a person",
        "runbook.md#needs-person",
    ),
    "a lapsed key is not taken": Fault(
        lambda: make_key(at=ago(minutes=3)),
        {"IdempotencyLapsedTooLong"},
        60,
        "1 Running",
        "runbook.md#lapsed",
    ),
    "late news": Fault(
        late_news,
        {"IdempotencyLateNews", "IdempotencyPersonNeeded"},
        60,
        "Late news: it happened although the key says otherwise",
        "runbook.md#late-news",
    ),
    "deferred work is late": Fault(
        lambda: make_waiting(due_at=ago(minutes=5), at=ago(minutes=6)),
        {"IdempotencyBacklogLate"},
        60,
        "1 Deferred work due oldest 5 min",
        "runbook.md#overdue",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_fires_its_alert_and_is_on_the_overview(
    fault: Fault, healthy: str, overview: Callable[[], str]
) -> None:
    fault.cause()
    fired = fires_after(scrape(), healthy=healthy, seconds=fault.within + 60)
    assert set(fired) == fault.alerts
    assert max(fired.values()) <= fault.within
    assert fault.shown in overview()
    assert any(fault.leads in section(alert) for alert in fault.alerts)


def section(alert: str) -> str:
    """Return what the runbook says of an alert."""
    return RUNBOOK.split(f"\n### {alert}\n")[1].split("\n### ")[0]


def test_nothing_fires_while_all_is_well(healthy: str) -> None:
    assert fires_after(healthy, healthy=healthy, seconds=7200) == {}


def test_a_key_that_is_looked_up_in_time_alarms_nobody(healthy: str) -> None:
    make_key(state=State.UNKNOWN, at=ago(seconds=30))
    make_key(at=ago(seconds=5))
    make_waiting()
    assert fires_after(scrape(), healthy=healthy, seconds=600) == {}


# -- what only processes know ----------------------------------------------------------------------

EVENTS = {
    "the gateway is down": (
        repeated(telemetry.CallEnded("gateway", "failed", attempts=3, seconds=9)),
        "IdempotencyCallsFail",
    ),
    "answers are lost": (
        repeated(telemetry.KeySettled("pay", "unknown", "run", 1, False, "id", "hash", "request")),
        "IdempotencyManyUnknown",
    ),
    "work is given up": (
        repeated(telemetry.OperationMoved("payments.refund", "gave-up", attempts=3), 1),
        "IdempotencyWorkGivenUp",
    ),
    "turns fail": (
        repeated(telemetry.TurnEnded("reconcile", "failed", 1), 5),
        "IdempotencyTurnsFail",
    ),
    "requests are shed": (
        repeated(telemetry.AdmissionRefused("payments.create", "in-flight"), 60),
        "IdempotencyShedding",
    ),
    "a source is poorer": (
        repeated(telemetry.SourceDegraded("rates", "stale"), 60),
        "IdempotencyDegraded",
    ),
    "a client reuses keys": (
        repeated(telemetry.KeyMet("payments.create", "reused"), 60),
        "IdempotencyKeysReused",
    ),
}


@pytest.mark.parametrize(("cause", "alert"), EVENTS.values(), ids=EVENTS)
def test_what_is_counted_fires_its_alert(
    cause: Callable[[], object], alert: str, healthy: str
) -> None:
    for event in (
        telemetry.CallEnded("gateway", "failed", attempts=1, seconds=1),
        telemetry.KeySettled("pay", "unknown", "run", 1, False, "id", "hash", "request"),
        telemetry.AdmissionRefused("payments.create", "in-flight"),
        telemetry.SourceDegraded("rates", "stale"),
        telemetry.KeyMet("payments.create", "reused"),
    ):
        emit(event)
    before, grown = scrape(), []
    for _ in range(60):
        cause()
        everything_beats()
        grown.append(scrape())
    fired = fires_after(grown[0], healthy=before, seconds=15, then=grown[1:])
    assert set(fired) == {alert}


def test_an_open_breaker(
    healthy: str, breaker: CircuitBreaker, overview: Callable[[], str]
) -> None:
    for _ in range(breaker.settings.min_calls):
        permit = breaker.acquire()
        breaker.record(permit, Vote.FAILURE)
    assert set(fires_after(scrape(), healthy=healthy, seconds=120)) == {"IdempotencyBreakerOpen"}
    assert "gateway open: calls are refused" in overview()


def test_a_breaker_that_somebody_has_forgotten(
    healthy: str, breaker: CircuitBreaker, overview: Callable[[], str]
) -> None:
    breaker.force(Force.OPEN, actor="ops", reason="maintenance")
    fired = fires_after(scrape(), healthy=healthy, seconds=2400)
    assert fired == {"IdempotencyBreakerForced": 1800}
    assert "by ops: maintenance" in overview()


def test_read_only_mode_that_somebody_has_forgotten(
    healthy: str, switch: ReadOnlySwitch, overview: Callable[[], str]
) -> None:
    switch.on(actor="ops", reason="the books are moved")
    assert set(fires_after(scrape(), healthy=healthy, seconds=600)) == {"IdempotencyReadOnly"}
    assert "Read-only mode is on for payments: the books are moved" in overview()


def test_a_lost_store(
    healthy: str, breaker: CircuitBreaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CircuitBreaker, "alone", True)
    assert set(fires_after(scrape(), healthy=healthy, seconds=120)) == {"IdempotencyStoreLost"}


def test_a_database_that_does_not_answer(healthy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(census, "take", refuse)
    assert fires_after(scrape(), healthy=healthy, seconds=300) == {"IdempotencyLedgerDown": 30}


def test_metrics_that_nobody_answers(healthy: str) -> None:
    fired = fires_after(NOBODY, healthy=healthy, seconds=600)
    # What was scraped last counts for five minutes more.
    assert set(fired) == {"IdempotencyMetricsMissing"}
