"""Traces, recorded by OpenTelemetry's own SDK: attributes on the span under way, links back to the request."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from idempotency import telemetry, tracing
from idempotency.telemetry import emit

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Return what collects the ended spans."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield kept
    provider.shutdown()


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def linked(span: ReadableSpan) -> list[str]:
    return [f"{link.context.trace_id:032x}" for link in span.links]


def test_a_run_is_a_span_of_its_own_that_links_to_its_request(
    exporter: InMemorySpanExporter,
) -> None:
    with tracing.span("run", of=PARENT, operation="payments.refund", key_id="0198"):
        tracing.mark(decision="applied")
    span = only(exporter)
    assert span.name == "idempotency.run"
    assert linked(span) == [TRACE]
    assert dict(span.attributes or {}) == {
        "idempotency.operation": "payments.refund",
        "idempotency.key_id": "0198",
        "idempotency.decision": "applied",
    }


@pytest.mark.parametrize("of", ["", "nonsense", f"00-{'0' * 32}-{'0' * 16}-01"])
def test_what_is_no_trace_is_not_linked(exporter: InMemorySpanExporter, of: str) -> None:
    with tracing.span("run", of=of):
        tracing.link(of)
    assert linked(only(exporter)) == []


def test_a_webhook_links_to_the_request_that_it_is_about(exporter: InMemorySpanExporter) -> None:
    with trace.get_tracer("host").start_as_current_span("POST /webhooks/"):
        tracing.link(PARENT)
    assert linked(only(exporter)) == [TRACE]


def test_events_mark_the_span_under_way(exporter: InMemorySpanExporter) -> None:
    with trace.get_tracer("host").start_as_current_span("POST /payments/"):
        emit(telemetry.AttemptEnded("gateway", "ambiguous", "read-timeout", 1, 3.0))
        emit(telemetry.AttemptEnded("gateway", "success", "", 2, 0.1))
        emit(telemetry.CallRefused("gateway", "circuit-open"))
        emit(telemetry.KeySettled("pay", "completed", "request", 1, False, "i", "c0ffee", "r"))
        emit(telemetry.RunEnded("pay", "request", "settled", 1))
    span = only(exporter)
    assert dict(span.attributes or {}) == {
        "idempotency.operation": "pay",
        "idempotency.state": "completed",
        "idempotency.by": "request",
        "idempotency.key_hash": "c0ffee",
        "idempotency.outcome": "settled",
    }
    assert [event.name for event in span.events] == ["idempotency.attempt", "idempotency.refused"]
    assert (span.events[0].attributes or {})["idempotency.reason"] == "read-timeout"


def test_the_span_under_way_is_what_a_key_keeps(exporter: InMemorySpanExporter) -> None:
    assert tracing.current(PARENT) == PARENT
    with trace.get_tracer("host").start_as_current_span("POST /payments/") as span:
        kept = tracing.current(PARENT)
    assert tracing.trace_id(kept) == f"{span.get_span_context().trace_id:032x}" != TRACE


@pytest.mark.parametrize(("text", "found"), [(PARENT, TRACE), ("", ""), ("00-<script>-x-01", "")])
def test_the_id_of_a_trace_is_hexadecimal_or_nothing(text: str, found: str) -> None:
    assert tracing.trace_id(text) == found
