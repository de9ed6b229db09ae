"""Real processes die, freeze and lose their broker: what Prometheus scrapes of it fires the alert, within a minute."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from project.embedded import Store
from tests.support.alerting import ROOT, fires_after
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

CARD = {"amount": 500, "currency": "EUR", "source": "pm_card_visa"}
SILENT = "idempotency_recurring_silent"


@pytest.fixture
def stack(live_stack: Stack, tmp_path: Path) -> Stack:
    """Return a deployment whose sweeps come often, and whose processes share their metrics."""
    (tmp_path / "metrics").mkdir()
    live_stack.environment |= {
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"),
        "IDEMPOTENCY_WAKE_EVERY": "1",
        "IDEMPOTENCY_RECONCILE_EVERY": "1",
        "IDEMPOTENCY_PURGE_EVERY": "2",
        "PAYMENTS_FOLLOW_EVERY": "2",
    }
    return live_stack


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Store]:
    """Return a broker of its own, which the test may stop."""
    store = Store(home=tmp_path / "broker", durable=False)
    store.start()
    yield store
    store.stop()


def scrape(stack: Stack) -> str:
    answer = stack.get("/metrics")
    assert answer.status_code == 200
    return answer.text


def value(text: str, line: str) -> float:
    found = [part.rpartition(" ")[2] for part in text.splitlines() if part.startswith(line)]
    return sum(map(float, found))


def when(stack: Stack, *lines: str, is_: float = 1) -> str:
    """Wait until all these gauges have the value; return the scrape that says so."""

    def look() -> str:
        text = scrape(stack)
        return text if all(line + f" {is_:.1f}" in text for line in lines) else ""

    return stack.wait_until(look, f"{lines} are {is_}", seconds=60)


def alive(stack: Stack) -> str:
    names = ("beat", "broker", "wake", "reconcile", "purge", "follow-up")
    return when(stack, *(f'{SILENT}{{task="{name}"}}' for name in names), is_=0)


def test_workers_that_freeze_or_idle_and_a_beat_that_dies(stack: Stack) -> None:
    stack.start("web", "worker", "beat")
    healthy = alive(stack)
    assert fires_after(healthy, healthy=healthy, seconds=600) == {}

    stack.freeze("worker")
    frozen = when(stack, f'{SILENT}{{task="wake"}}', f'{SILENT}{{task="reconcile"}}')
    assert fires_after(frozen, healthy=healthy, seconds=60) == {"IdempotencyWorkersSilent": 15}
    stack.thaw("worker")
    assert fires_after(alive(stack), healthy=healthy, seconds=60) == {}

    stack.kill("worker")
    # Connected, and taking nothing.
    stack.start_worker(queue="elsewhere")
    idle = when(stack, f'{SILENT}{{task="wake"}}', f'{SILENT}{{task="reconcile"}}')
    assert fires_after(idle, healthy=healthy, seconds=60) == {"IdempotencyWorkersSilent": 15}
    stack.kill("worker")
    stack.start("worker")
    alive(stack)

    stack.kill("beat")
    silent = when(stack, f'{SILENT}{{task="beat"}}')
    assert fires_after(silent, healthy=healthy, seconds=60) == {"IdempotencyBeatSilent": 15}
    checks = stack.get("/readyz/").json()
    assert checks["checks"]["beat"] == "silent"


def test_a_broker_that_stops(stack: Stack, broker: Store) -> None:
    stack.environment["CELERY_BROKER_URL"] = broker.url
    stack.start("web", "worker", "beat")
    healthy = alive(stack)
    broker.stop()
    fault = when(stack, f'{SILENT}{{task="broker"}}', f'{SILENT}{{task="wake"}}')
    assert fires_after(fault, healthy=healthy, seconds=60) == {"IdempotencyBrokerSilent": 15}


def test_a_gateway_that_is_down_and_what_all_processes_count_together(stack: Stack) -> None:
    stack.start("simulator", "worker", "beat")
    stack.start_web(workers=2)
    alive(stack)
    paid = [
        stack.post("/api/payments/", {**CARD, "order_id": f"o{n}"}, key=f"k{n}").status_code
        for n in range(12)
    ]
    assert paid == [201] * 12
    text = scrape(stack)
    made = (
        'idempotency_settlements_total{by="request",operation="payments.create",state="completed"}'
    )
    # Whichever of the two processes was asked, it tells of both.
    assert value(text, made) == 12
    assert value(text, "idempotency_turns_total") > 0

    stack.kill("simulator")
    statuses = set()
    for number in range(14):
        body = {**CARD, "order_id": f"p{number}"}
        statuses.add(stack.post("/api/payments/", body, key=f"p{number}").status_code)
    assert statuses == {503}
    opened = re.compile(r'idempotency_breaker_state{breaker="gateway .*",state="(half_)?open"} 1.0')
    open_breaker = stack.wait_until(
        lambda: text if opened.search(text := scrape(stack)) else "", "the breaker is open"
    )
    fired = fires_after(open_breaker, healthy=text, seconds=120)
    assert {"IdempotencyBreakerOpen", "IdempotencyCallsFail"} == set(fired)
    assert "k1" not in open_breaker


def test_read_only_mode(stack: Stack) -> None:
    stack.start("web", "worker", "beat")
    healthy = alive(stack)
    command = ["manage.py", "payments_read_only", "on", "--reason", "the books are moved"]
    subprocess.run(
        [sys.executable, *command], env=stack.environment, cwd=ROOT, check=True, timeout=60
    )
    fault = when(stack, 'idempotency_read_only{switch="payments"}')
    fired = fires_after(fault, healthy=healthy, seconds=600)
    assert fired == {"IdempotencyReadOnly": 300}
