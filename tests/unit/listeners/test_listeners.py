"""Who listens: the host's receivers, the log, the metrics; each hears what it is for, and nothing else."""

import logging
from typing import Any

import pytest
from django.dispatch import Signal

from idempotency import signals, telemetry
from idempotency.listeners import hosts, logs
from idempotency.telemetry import Event, emit

SETTLED = telemetry.KeySettled(
    operation="payments.create",
    state="completed",
    by="request",
    seconds=0.25,
    deferred=False,
    key_id="0198",
    key_hash="c0ffee",
    request_id="req-1",
)


def test_every_signal_has_its_event() -> None:
    declared = {value for value in vars(signals).values() if isinstance(value, Signal)}
    assert set(hosts.SIGNALS.values()) == declared
    assert set(hosts.SIGNALS) <= set(telemetry.catalogue())


def test_a_host_hears_a_settlement() -> None:
    heard: list[tuple[type, Event]] = []

    def receive(sender: type, event: Event, **_: Any) -> None:
        heard.append((sender, event))

    signals.key_settled.connect(receive)
    try:
        emit(SETTLED)
    finally:
        signals.key_settled.disconnect(receive)
    assert heard == [(telemetry.KeySettled, SETTLED)]


def test_a_receiver_that_fails_is_logged_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Event] = []

    def fail(**_: Any) -> None:
        raise ValueError("no")

    def receive(event: Event, **_: Any) -> None:
        heard.append(event)

    for receiver in (fail, receive):
        signals.key_settled.connect(receiver)
    try:
        emit(SETTLED)
    finally:
        for receiver in (fail, receive):
            signals.key_settled.disconnect(receiver)
    assert heard == [SETTLED]
    assert "fail" in caplog.text


def test_a_settlement_is_one_line_with_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "idempotency"):
        emit(SETTLED)
    (record,) = caplog.records
    assert record.name == "idempotency.key"
    assert record.getMessage() == "payments.create: completed by request after 0.250 s"
    facts = vars(record)
    assert facts["event"] == "KeySettled"
    assert (facts["key_hash"], facts["request_id"], facts["key_id"]) == ("c0ffee", "req-1", "0198")


@pytest.mark.parametrize(
    ("event", "level", "words"),
    [
        (
            telemetry.KeySettled("p", "unknown", "lease", 45, False, "i", "h", "r"),
            "WARNING",
            "p: unknown by lease",
        ),
        (telemetry.PersonNeeded("p", "The books differ", "i"), "ERROR", "a person is needed"),
        (telemetry.LateNews("event", "released", "i"), "ERROR", "late news from event"),
        (telemetry.OperationMoved("p", "gave-up", 3), "ERROR", "gave up after 3 runs"),
        (telemetry.NudgeLost("queue-full"), "WARNING", "queue-full"),
        (telemetry.TurnEnded("wake", "failed", 1), "ERROR", "wake: this turn failed"),
        (
            telemetry.BreakerChanged("b", "closed", "open", "failures"),
            "WARNING",
            "b: closed to open: failures",
        ),
        (telemetry.StoreLost("s", "refused"), "ERROR", "s: lost: refused"),
        (telemetry.StoreFound("s"), "INFO", "s: found again"),
        (telemetry.ReadOnlySwitched("on", "ops", "why"), "WARNING", "read-only mode on, by ops"),
        (telemetry.StaffActed("staff-settle", "ops", "i"), "INFO", "staff-settle by ops"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)
def test_what_somebody_may_have_to_act_on_has_its_line(
    event: Event, level: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "idempotency"):
        logs.write(event)
    (record,) = caplog.records
    assert record.levelname == level
    assert words in record.getMessage()


@pytest.mark.parametrize(
    "event",
    [
        telemetry.KeyMet("p", "replay"),
        telemetry.RunEnded("p", "request", "settled", 1),
        telemetry.OperationMoved("p", "waits", 1),
        telemetry.TurnEnded("wake", "ok", 1),
        telemetry.AttemptEnded("g", "success", "", 1, 1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_is_ordinary_is_counted_and_not_logged(
    event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "idempotency"):
        logs.write(event)
    assert caplog.records == []
