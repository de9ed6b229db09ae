"""What the host shows by its hooks may fail, most likely when something is wrong: the ledger is still scraped."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from django.conf import LazySettings
from django.db import OperationalError

from idempotency.resilience import CircuitBreaker
from tests.integration.monitoring.conftest import scrape


def away(*_: object) -> NoReturn:
    raise OperationalError("the host's own table cannot be asked")


class Lazy:
    """A switch that asks only when it is asked."""

    name = "host"

    def reason(self) -> str | None:
        away()


@pytest.mark.parametrize("hook", [away, lambda request: [Lazy()]], ids=["hook", "switch"])
def test_a_hook_that_fails_hides_only_its_own(
    healthy: str, settings: LazySettings, breaker: CircuitBreaker, hook: Callable[[Any], Any]
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ADMIN_SWITCHES": hook}
    told = scrape()
    assert "idempotency_ledger_up 1.0" in told
    assert 'idempotency_breaker_state{breaker="gateway",state="closed"} 1.0' in told
    assert "idempotency_read_only{" not in told
