"""Every settlement is told once, after its commit, by whoever made it; what is rolled back is not told."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import transaction
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from idempotency import reconciliation, telemetry
from idempotency.exceptions import CallFailed
from idempotency.ledger.writing import key_hash
from idempotency.models import Key
from idempotency.operations import heard_of, late_news
from idempotency.telemetry import Event
from idempotency.testing import pass_time
from idempotency.types import Pending
from tests.integration.core.conftest import Caller
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    """Return the events that are emitted, with whether each came inside a transaction."""
    kept: list[Event] = []

    def listen(event: Event) -> None:
        assert not transaction.get_connection().in_atomic_block, event
        kept.append(event)

    ends = [
        telemetry.subscribe(kind, listen)
        for kind in (
            telemetry.KeySettled,
            telemetry.KeyMet,
            telemetry.PersonNeeded,
            telemetry.LateNews,
            telemetry.KeyReconciled,
        )
    ]
    yield kept
    for end in ends:
        end()


def settled(heard: list[Event]) -> list[tuple[str, str, str]]:
    return [
        (event.operation, event.state, event.by)
        for event in heard
        if isinstance(event, telemetry.KeySettled)
    ]


def test_a_request_is_told_once_and_its_repeat_as_a_replay(
    caller: Caller, key: str, heard: list[Event]
) -> None:
    caller.post("/local/", {"name": "a"}, key=key, HTTP_X_REQUEST_ID="req-9")
    caller.post("/local/", {"name": "a"}, key=key)
    first, repeat = heard
    assert isinstance(first, telemetry.KeySettled)
    row = Key.objects.get()
    assert (first.key_id, first.state, first.by) == (str(row.pk), "completed", "request")
    assert (first.key_hash, first.request_id) == (key_hash(key), "req-9")
    assert 0 <= first.seconds < 60
    assert repeat == telemetry.KeyMet(row.operation, "replay", str(row.pk))


@pytest.mark.parametrize("header", ["HTTP_X_REQUEST_ID", "HTTP_TRACEPARENT"])
def test_no_header_keeps_a_request_from_its_key(
    caller: Caller, key: str, settings: LazySettings, header: str
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "RECORD_REPLAYS": True}
    answers = [
        caller.post("/local/", {"name": name}, key=key, **{header: "a\x00b"}) for name in "aab"
    ]
    assert [answer.status_code for answer in answers] == [201, 201, 422]
    assert "a\ufffdb" in Key.objects.values_list("request_id", "traceparent").get()


def test_a_key_that_is_free_again_is_not_told(caller: Caller, key: str, heard: list[Event]) -> None:
    caller.post("/local/", {"kind": "raise"}, key=key)
    assert heard == []


def test_a_call_that_failed_is_told_as_released(
    caller: Caller, key: str, heard: list[Event]
) -> None:
    other_side.script.append(CallFailed("refused", code="gateway-unavailable"))
    caller.post("/charge/", {"name": "a"}, key=key)
    assert [event[1:] for event in settled(heard)] == [("released", "request")]


def test_an_unknown_key_is_told_by_its_run_and_then_by_the_reconciler(
    caller: Caller, key: str, heard: list[Event]
) -> None:
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(seconds=30)
    reconciliation.run()
    assert [event[1:] for event in settled(heard)] == [
        ("unknown", "run"),
        ("completed", "reconciler"),
    ]
    assert [e.decision for e in heard if isinstance(e, telemetry.KeyReconciled)] == ["applied"]


def test_a_person_is_told_of_once(caller: Caller, key: str, heard: list[Event]) -> None:
    other_side.script.append("lose")
    other_side.lookup = Pending()
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(seconds=4000)
    for _ in range(3):
        reconciliation.reconcile(key_id=Key.objects.get().pk)
    needed = [event for event in heard if isinstance(event, telemetry.PersonNeeded)]
    assert [event.reason for event in needed] == ["It is unknown for too long."]


def test_late_news_are_told_only_if_they_are_kept(heard: list[Event]) -> None:
    with transaction.atomic():
        late_news(key_id=None, actor="event", detail={})
        transaction.set_rollback(True)
    assert heard == []
    with transaction.atomic():
        late_news(key_id=None, actor="event", detail={})
    assert heard == [telemetry.LateNews("event", "not known", "")]


def test_the_log_has_one_line_a_settlement_and_neither_key_nor_payload(
    caller: Caller, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "idempotency"):
        caller.post("/charge/", {"name": "a secret name"}, key=key)
    lines = [record for record in caplog.records if record.name == "idempotency.key"]
    assert len(lines) == 1
    everything = "".join(str(vars(record)) for record in caplog.records)
    assert key not in everything
    assert "a secret name" not in everything


def test_request_reconciler_and_webhook_are_linked_to_one_trace(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key, HTTP_TRACEPARENT=PARENT)
    row = Key.objects.get()
    assert row.traceparent == PARENT
    with trace.get_tracer("host").start_as_current_span("webhook"), transaction.atomic():
        heard_of(key_id=row.pk, step="charge", reference="pi_1")
    pass_time(seconds=30)
    reconciliation.run()
    spans: dict[str, Any] = {span.name: span for span in exporter.get_finished_spans()}
    assert set(spans) == {"webhook", "idempotency.reconcile"}
    for span in spans.values():
        assert [f"{link.context.trace_id:032x}" for link in span.links] == [TRACE]
    assert spans["idempotency.reconcile"].attributes["idempotency.decision"] == "applied"
    provider.shutdown()
