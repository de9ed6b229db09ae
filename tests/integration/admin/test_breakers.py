"""A circuit breaker is shown as it stands, and held or let go by whoever may, with a reason."""

import re
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse

from idempotency.models import Event
from idempotency.resilience import BreakerState, CircuitBreaker
from tests.integration.admin.conftest import Login

OVERVIEW = reverse("admin:idempotency_heartbeat_changelist")
PAGE = reverse("admin:idempotency_breaker", args=("stripe acct_1",))


@pytest.fixture
def breaker(settings: Any) -> CircuitBreaker:
    made = CircuitBreaker(name="stripe acct_1")
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ADMIN_BREAKERS": lambda _: [made]}
    return made


def force(login: Login, how: str) -> str:
    client = login("engineers")
    form = re.findall(r'name="form" value="([^"]+)"', client.get(PAGE).content.decode())[0]
    data = {"form": form, "force": how, "reason": "The gateway told us to wait."}
    page: str = client.post(PAGE, data, follow=True).content.decode()
    return page


def test_the_overview_shows_how_it_stands(login: Login, breaker: CircuitBreaker) -> None:
    page = login("support").get(OVERVIEW).content.decode()
    assert "stripe acct_1" in page
    assert "closed: calls go through" in page
    assert "Force…" not in page


def test_it_is_held_open_under_a_name(login: Login, breaker: CircuitBreaker) -> None:
    page = force(login, "open")
    assert breaker.snapshot().state is BreakerState.FORCED_OPEN
    assert "by engineers: The gateway told us to wait." in page
    event = Event.objects.get(kind="staff-breaker")
    assert (event.actor, event.detail["before"], event.detail["asked"]) == (
        "engineers",
        "closed",
        "open",
    )


def test_it_is_let_go(login: Login, breaker: CircuitBreaker) -> None:
    force(login, "open")
    client = login("superuser")
    form = re.findall(r'name="form" value="([^"]+)"', client.get(PAGE).content.decode())[0]
    client.post(PAGE, {"form": form, "force": "clear", "reason": "It is back."})
    assert breaker.snapshot().state is BreakerState.CLOSED


def test_a_host_that_is_set_up_wrongly_still_has_an_overview(login: Login, settings: Any) -> None:
    def broken(_: object) -> None:
        raise ImproperlyConfigured("no gateway is named")

    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ADMIN_BREAKERS": broken}
    assert "no gateway is named" in login("support").get(OVERVIEW).content.decode()
