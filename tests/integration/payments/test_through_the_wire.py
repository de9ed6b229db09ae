"""The whole of payments on the simulator's real sockets: charges, refunds, payouts, and its signed events."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connections
from pytest_django.live_server_helper import LiveServer

from idempotency.models import Key
from idempotency.operations import runner
from payments.models import Payment
from payments.simulator import Config, Settings, Simulator
from tests.integration.payments.conftest import Shop, settle_unknown

pytestmark = [pytest.mark.usefixtures("no_broker"), pytest.mark.slow]

SECRET = "whsec_wire"


class Wire:
    """The gateway's other door: what it did, and what it is told to do."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/_sim/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"null")

    @property
    def effects(self) -> list[tuple[str, int]]:
        return [(effect["kind"], effect["amount"]) for effect in self.ask("GET", "effects")]


@pytest.fixture
def wire(
    shop: Shop, settings: LazySettings, live_server: LiveServer, tmp_path: Path
) -> Iterator[Wire]:
    config = Config(webhook_url=f"{live_server.url}/api/webhooks/stripe/", webhook_secret=SECRET)
    simulator = Simulator(Settings(data_dir=tmp_path, port=0, config=config))
    simulator.start()
    settings.PAYMENTS = {
        "GATEWAY_URL": simulator.url,
        "GATEWAY_API_KEY": "sk_test_wire",
        "GATEWAY_SETTLING_TIME": 0.2,
        "GATEWAY_TIMEOUT": 1,
        "WEBHOOK_SECRET": SECRET,
    }
    yield Wire(simulator.url)
    simulator.stop()


def no_longer_unknown() -> bool:
    settle_unknown()
    return not Key.objects.filter(state="unknown").exists()


def until(holds: Callable[[], bool]) -> None:
    """Wait until another thread has done it."""
    limit = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < limit, "it did not come about"
        time.sleep(0.02)


def test_a_payment_a_refund_and_a_payout(shop: Shop, wire: Wire) -> None:
    paid = shop.pay(key="k1")
    assert (paid.status_code, shop.pay(key="k1").content) == (201, paid.content)
    refund = shop.post(f"{paid['Location']}refunds/", {"amount": 200, "reason": "one cup too many"})
    payout = shop.post("/api/payouts/", {"amount": 9, "currency": "UAH", "destination": "acct_1"})
    nobody = shop.post(
        "/api/payouts/", {"amount": 9, "currency": "UAH", "destination": "acct_invalid"}
    )
    while runner.run() is not None:
        pass

    assert wire.effects == [("charge", 1200), ("refund", 200), ("payout", 9)]
    for promised in (refund, payout):
        assert shop.client.get(promised["Location"]).json()["result"]["status"] == "succeeded"
    assert shop.client.get(nobody["Location"]).json()["error"]["code"] == "payout-refused"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("pm_card_chargeDeclined", "payment-declined"),
        ("pm_card_threeDSecure2Required", "action-required"),
    ],
)
def test_a_decline_is_the_same_whether_it_was_heard_or_found(
    shop: Shop, wire: Wire, source: str, code: str
) -> None:
    heard = shop.pay(source=source)
    fault = {"path": "/v1/payment_intents", "kind": "hang_after", "times": 3, "seconds": 2}
    wire.ask("POST", "faults", fault)
    assert shop.pay(key="lost", source=source).status_code == 504
    until(no_longer_unknown)
    found = shop.pay(key="lost", source=source)

    assert (heard.status_code, heard.json()["code"]) == (402, code)
    assert found.content == heard.content
    assert wire.effects == []


def test_a_processing_payment_is_finished_by_the_gateways_own_event(shop: Shop, wire: Wire) -> None:
    paid = shop.pay(source="pm_card_processing").json()
    assert paid["status"] == "processing"
    wire.ask("POST", "webhooks", {"settle": paid["gateway_reference"], "as": "succeeded"})

    until(lambda: Payment.objects.get().status == "succeeded")
    assert wire.effects == [("charge", 1200)]


@pytest.mark.parametrize("mode", ["once", "twice", "reordered", "before-answer"])
def test_f1_events_in_any_order_change_nothing_that_is_paid(
    shop: Shop, wire: Wire, mode: str
) -> None:
    wire.ask("PUT", "config", {"webhooks": mode})
    answers = [shop.pay() for _ in range(3)]
    connections.close_all()

    assert [answer.json()["status"] for answer in answers] == ["succeeded"] * 3
    until(lambda: all(_delivered(event) for event in wire.ask("GET", "webhooks")))
    assert {payment.version for payment in Payment.objects.all()} == {2}
    assert wire.effects == [("charge", 1200)] * 3


def _delivered(event: Any) -> bool:
    return all(copy["state"] == "delivered" for copy in event["deliveries"])
