"""From a request to the work that it promised, and to the console: one trace, recorded by OpenTelemetry's own SDK."""

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from idempotency.models import Key
from idempotency.operations import runner
from payments.gateway.fake import FakeGateway
from tests.integration.payments.conftest import Shop


def test_a_refund_leads_back_to_its_request_and_the_console_to_its_trace(
    shop: Shop,
    fake: FakeGateway,
    no_broker: None,
    settings: LazySettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "TRACE_URL": "https://traces.test/{trace_id}"}
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    paid = shop.pay()

    # What Django's instrumentation does around a request.
    with trace.get_tracer("django").start_as_current_span("POST refunds") as span:
        refund = shop.post(f"{paid['Location']}refunds/", {"amount": 100}, key="k1")
    assert refund.status_code == 202
    runner.run()

    spans = {one.name: one for one in exporter.get_finished_spans()}
    of_request = f"{span.get_span_context().trace_id:032x}"
    (link,) = spans["idempotency.run"].links
    assert f"{link.context.trace_id:032x}" == of_request
    assert (spans["idempotency.run"].attributes or {})["idempotency.state"] == "completed"
    key = Key.objects.get(key="k1")
    assert key.traceparent.split("-")[1] == of_request

    console = Client()
    console.force_login(User.objects.create_superuser("root"))
    page = console.get(f"/admin/idempotency/key/{key.pk}/change/").content.decode()
    assert f'href="https://traces.test/{of_request}"' in page
    provider.shutdown()
