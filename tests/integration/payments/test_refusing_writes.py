"""Writes that are turned away before anything is done for them: read-only mode, and too many payments (R29, R30)."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from io import StringIO
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from rest_framework.response import Response
from rest_framework.test import APIClient

from idempotency.models import Key
from idempotency.resilience import ReadOnlySwitch, StoreUnavailable
from payments.conf import conf
from payments.degradation import breakers, charging, read_only
from payments.gateway.fake import FakeGateway
from tests.integration.payments.conftest import Shop


@pytest.fixture
def switch() -> Iterator[ReadOnlySwitch]:
    yield read_only()
    read_only().off(actor="tests", reason="the test is over")


def body_of(answer: Response) -> Any:
    return json.loads(answer.content)


def test_r30_in_read_only_mode_writes_are_refused_and_reads_go_on(
    shop: Shop, fake: FakeGateway, switch: ReadOnlySwitch
) -> None:
    paid = shop.pay()
    switch.on(actor="ops", reason="moving house")

    answer = shop.pay(key="k1")
    assert answer.status_code == 503
    assert answer["Content-Type"] == "application/problem+json"
    assert int(answer["Retry-After"]) >= 1
    assert body_of(answer)["code"] == "read-only"
    assert body_of(answer)["retryable"] is True
    assert "moving house" in body_of(answer)["detail"]
    assert not Key.objects.filter(key="k1").exists()
    assert shop.client.get(paid["Location"]).status_code == 200
    assert shop.client.get("/api/payments/").status_code == 200

    switch.off(actor="ops", reason="moved")
    assert shop.pay(key="k1").status_code == 201
    assert len(fake.effects) == 2


@pytest.mark.parametrize(
    "path", ["/api/payouts/", "/api/receipts/", "/api/transfers/", "/api/payments/1/refunds/"]
)
def test_r30_every_write_of_the_api_is_refused(
    shop: Shop, fake: FakeGateway, switch: ReadOnlySwitch, path: str
) -> None:
    switch.on(actor="ops", reason="moving house")
    assert body_of(shop.post(path, {}))["code"] == "read-only"
    assert Key.objects.count() == 0


def test_r1_a_stranger_is_told_to_log_in_first(db: None, switch: ReadOnlySwitch) -> None:
    switch.on(actor="ops", reason="moving house")
    assert APIClient().post("/api/payments/", {}, format="json").status_code == 401


def test_staff_switch_it_by_a_command(switch: ReadOnlySwitch) -> None:
    def said(*words: str) -> str:
        out = StringIO()
        call_command("payments_read_only", *words, stdout=out)
        return out.getvalue().strip()

    assert said("status") == "writes are taken"
    assert said("on", "--reason", "moving house") == "read-only: moving house"
    assert said("status") == "read-only: moving house"
    assert said("off") == "writes are taken"
    for words in (["on"], ["on", "--reason", " "]):
        with pytest.raises(CommandError, match="--reason"):
            said(*words)


def test_the_command_does_not_guess_where_the_store_is_away(
    switch: ReadOnlySwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(switch, "_scripts", (lost, lost, lost))
    for words in (["status"], ["on", "--reason", "moving house"], ["off"]):
        with pytest.raises(CommandError, match="store cannot be reached"):
            call_command("payments_read_only", *words)
    assert switch.reason() is None
    monkeypatch.undo()


def test_r29_more_payments_than_the_gateway_takes_calls_are_refused(
    shop: Shop, fake: FakeGateway
) -> None:
    with ExitStack() as under_way:
        for _ in range(conf.GATEWAY_BULKHEAD):
            under_way.enter_context(charging().enter())
        answer = shop.pay(key="k1")
        assert answer.status_code == 503
        assert body_of(answer)["code"] == "overloaded"
        assert int(answer["Retry-After"]) >= 1
        assert not Key.objects.filter(key="k1").exists()
        # Only new payments are turned away.
        assert shop.client.get("/api/payments/").status_code == 200
    assert shop.pay(key="k1").status_code == 201


def test_r29_a_place_is_free_again_however_a_payment_ends(shop: Shop, fake: FakeGateway) -> None:
    for number in range(conf.GATEWAY_BULKHEAD + 1):
        assert shop.pay(key=f"k{number}", amount=-1).status_code == 400
    assert shop.pay(key="k1").status_code == 201


def test_the_console_is_given_every_breaker(settings: LazySettings) -> None:
    settings.PAYMENTS = {"GATEWAY_URL": "http://127.0.0.1:1"}
    names = [breaker.name for breaker in breakers(HttpRequest())]
    assert [name.split(" 127")[0] for name in names] == [
        "gateway",
        "gateway look-ups",
        "rates",
        "offers",
    ]
