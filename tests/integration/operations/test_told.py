"""How deferred work ends is told once, by whoever ended it; a turn of a recurring task, too."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from idempotency import tasks, telemetry
from idempotency.ledger.purge import purge
from idempotency.operations import heartbeat, inbox, runner
from tests.integration.operations.conftest import Caller, let_lapse
from tests.support.deferring import jobs

pytestmark = pytest.mark.django_db(transaction=True)

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def settled() -> Iterator[list[tuple[str, str, bool]]]:
    """Return the settlements that are told: state, by whom, whether deferred."""
    kept: list[tuple[str, str, bool]] = []
    end = telemetry.subscribe(
        telemetry.KeySettled, lambda event: kept.append((event.state, event.by, event.deferred))
    )
    yield kept
    end()


def test_work_that_is_promised_is_told_when_it_is_done(
    caller: Caller, settled: list[tuple[str, str, bool]]
) -> None:
    caller.job()
    assert settled == []
    runner.run()
    assert settled == [("completed", "worker", True)]


def test_work_that_is_given_up_and_work_that_is_cancelled(
    caller: Caller, settled: list[tuple[str, str, bool]]
) -> None:
    caller.job()
    jobs.script = [ValueError("no")]
    runner.run()
    cancelled = caller.job()
    caller.post(f"/api/operations/{cancelled}/cancel/")
    assert settled == [("completed", "worker", True), ("completed", "caller", True)]


def test_a_lease_that_ran_out(caller: Caller, settled: list[tuple[str, str, bool]]) -> None:
    operation = caller.job()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_execute", lambda *_: let_lapse(operation))
        runner.run()
    tasks.reconcile()
    assert settled[0] == ("unknown", "lease", True)


def test_a_message_and_its_copy(settled: list[tuple[str, str, bool]]) -> None:
    met: list[telemetry.KeyMet] = []
    end = telemetry.subscribe(telemetry.KeyMet, met.append)
    for _ in range(2):
        with inbox.consume("stripe", "evt_1"):
            pass
    end()
    assert settled == [("completed", "message", False)]
    assert met == [telemetry.KeyMet("inbox", "replay")]


@pytest.mark.parametrize("name", ["wake", "reconcile", "purge"])
def test_a_turn_that_succeeds_leaves_its_mark_and_is_told(name: str) -> None:
    turns: list[telemetry.TurnEnded] = []
    end = telemetry.subscribe(telemetry.TurnEnded, turns.append)
    getattr(tasks, name)()
    end()
    assert [(turn.task, turn.result) for turn in turns] == [(name, "ok")]
    assert heartbeat.ages()[name] < 60


def test_a_turn_that_fails_leaves_no_mark_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[telemetry.TurnEnded] = []
    end = telemetry.subscribe(telemetry.TurnEnded, turns.append)

    def fail() -> None:
        raise ValueError("no")

    monkeypatch.setattr(tasks, "purge_expired", fail)
    with pytest.raises(ValueError, match="no"):
        tasks.purge()
    end()
    assert [(turn.task, turn.result) for turn in turns] == [("purge", "failed")]
    assert "purge" not in heartbeat.ages()
    assert purge().keys == 0


def test_a_run_is_linked_to_the_request_that_promised_it(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    given = {"operation": "test.job", "input": 1}
    caller.post("/jobs/", given, key="k1", HTTP_TRACEPARENT=f"00-{TRACE}-b7ad6b7169203331-01")
    runner.run()
    (span,) = exporter.get_finished_spans()
    assert span.name == "idempotency.run"
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [TRACE]
    provider.shutdown()
