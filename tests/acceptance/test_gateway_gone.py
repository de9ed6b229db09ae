"""The gateway and the sources vanish while the rest runs: what is served then, and that nothing happens twice (R30)."""

from typing import Any

import pytest

from tests.support.stack import Stack

ORDER = {"order_id": "881", "amount": 1200, "currency": "EUR", "source": "pm_card_visa"}


@pytest.mark.slow
def test_r30_without_its_gateway_the_service_serves_what_it_can(live_stack: Stack) -> None:
    live_stack.start("simulator", "web")
    paid = live_stack.post("/api/payments/", ORDER, key="k1")
    assert paid.status_code == 201
    summary = f"{paid.headers['Location']}summary/"

    def live() -> Any:
        body = live_stack.get(summary).json()
        return None if body["partial"] else body

    whole = live_stack.wait_until(live, "all of the summary is live")
    assert whole["offers"]

    live_stack.kill("simulator")
    poorer = live_stack.get(summary)
    assert poorer.status_code == 200
    assert poorer.json()["payment"] == whole["payment"]
    assert poorer.json()["rates"] == whole["rates"]
    assert poorer.headers["X-Degraded"] == "rates=stale, offers=stale"
    assert poorer.headers["Cache-Control"] == "no-store"
    # Nothing was sent, so the key is free: an honest refusal, and no charge made up.
    refused = live_stack.post("/api/payments/", ORDER, key="k2")
    assert (refused.status_code, refused.json()["code"]) == (503, "gateway-unavailable")
    assert "Retry-After" in refused.headers
    # A repeat of what is done needs no gateway.
    replayed = live_stack.post("/api/payments/", ORDER, key="k1")
    assert replayed.content == paid.content
    assert replayed.headers["Idempotent-Replayed"] == "true"

    live_stack.start("simulator")
    assert live_stack.post("/api/payments/", ORDER, key="k2").status_code == 201
    assert len(live_stack.effects()) == 2
