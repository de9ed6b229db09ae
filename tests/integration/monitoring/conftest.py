"""A ledger in good health, what it scrapes as, and its overview."""

import html
import re
from collections import deque
from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from idempotency import metrics, telemetry
from idempotency.operations import heartbeat
from idempotency.resilience import CircuitBreaker, ReadOnlySwitch

Scrape = Callable[[], str]


@pytest.fixture
def breaker() -> CircuitBreaker:
    """Return the one breaker that is shown."""
    return CircuitBreaker(name="gateway")


@pytest.fixture
def switch() -> ReadOnlySwitch:
    """Return the one switch that is shown."""
    return ReadOnlySwitch(name="payments")


@pytest.fixture
def healthy(
    db: None,
    settings: LazySettings,
    breaker: CircuitBreaker,
    switch: ReadOnlySwitch,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Make everything well, and return how that is scraped."""
    settings.IDEMPOTENCY = {
        **settings.IDEMPOTENCY,
        "ADMIN_BREAKERS": lambda request: [breaker],
        "ADMIN_SWITCHES": lambda request: [switch],
    }
    monkeypatch.setattr(metrics, "KEPT", 0.0)
    monkeypatch.setattr(telemetry.turned_away, "_slices", deque())
    everything_beats()
    return scrape()


def everything_beats() -> None:
    """Let every periodic task have just run, whatever time the test has taken so far."""
    for name in heartbeat.limits():
        heartbeat.beat(name=name)


def scrape() -> str:
    """Return what Prometheus would get now."""
    answer = Client().get("/metrics")
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def overview(db: None) -> Callable[[], str]:
    """Return a function that reads the console's first page, as text."""
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))

    def read() -> str:
        page = client.get("/admin/idempotency/heartbeat/").content.decode()
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))

    return read
