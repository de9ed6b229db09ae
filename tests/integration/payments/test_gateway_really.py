"""`POST /api/payments/` to the last socket: our pipeline, the guard, Stripe's adapter, the simulator's process.

The oracle is the simulator: the money that moved, and the requests it received, which the journal must agree with.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from idempotency.models import Key, Sender, Step
from idempotency.telemetry import Event, subscribe
from tests.contract.simulator_process import Gateway, running
from tests.integration.payments.conftest import Shop

PATH = "/v1/payment_intents"
QUICK = {"GATEWAY_TIMEOUT": 1.0, "GATEWAY_RETRY_BASE": 0.01, "GATEWAY_RETRY_CAP": 0.05}


@pytest.fixture(scope="module")
def running_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(tmp_path_factory.mktemp("simulator")) as simulator:
        yield simulator


@pytest.fixture(params=[True, False], ids=["keyed", "unkeyed"])
def keyed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def simulator(running_simulator: Gateway, settings: LazySettings, keyed: bool) -> Gateway:
    running_simulator.control("POST", "reset")
    running_simulator.configure(idempotency=keyed)
    settings.PAYMENTS = {
        "GATEWAY_URL": running_simulator.url,
        "GATEWAY_API_KEY": "sk_test_of_the_tests",
        "GATEWAY_KEYED": keyed,
        **QUICK,
    }
    return running_simulator


def sends(simulator: Gateway) -> list[dict[str, Any]]:
    return [request for request in simulator.requests() if request["method"] == "POST"]


def journalled_sends() -> int:
    return sum(Sender.objects.values_list("attempts", flat=True))


@pytest.mark.parametrize(
    ("kind", "times", "keyed_ends", "unkeyed_ends"),
    [
        (None, 0, (201, 1, 1), (201, 1, 1)),
        ("refuse_503", 2, (201, 3, 1), (201, 3, 1)),
        ("rate_limit_429", 3, (503, 3, 0), (503, 3, 0)),
        ("reset_after", 1, (201, 2, 1), (504, 1, 1)),
        ("reset_after", 3, (504, 3, 1), (504, 1, 1)),
        ("proxy_503_before", 1, (201, 2, 1), (504, 1, 0)),
        ("hang_after", 1, (201, 2, 1), (504, 1, 1)),
        ("drip", 3, (504, 3, 1), (504, 1, 1)),
        ("error_400_kept_before", 1, (503, 1, 0), (503, 1, 0)),
    ],
)
def test_r24_one_layer_retries_and_the_journal_knows_each_send(
    shop: Shop,
    simulator: Gateway,
    keyed: bool,
    kind: str | None,
    times: int,
    keyed_ends: tuple[int, int, int],
    unkeyed_ends: tuple[int, int, int],
) -> None:
    if kind is not None:
        simulator.add_fault(kind, PATH, times=times)
    heard: list[Event] = []
    unsubscribe = subscribe(Event, heard.append)
    answer = shop.pay(key="k1")
    unsubscribe()
    ends = (answer.status_code, len(sends(simulator)), len(simulator.effects()))
    assert ends == (keyed_ends if keyed else unkeyed_ends), heard
    assert journalled_sends() == len(sends(simulator))
    assert {send["idempotency_key"] for send in sends(simulator)} == {
        Step.objects.get().downstream_key
    }
    state = {201: "completed", 503: "released", 504: "unknown"}[answer.status_code]
    assert Key.objects.get().state == state


def test_d2_after_a_no_to_us_the_same_key_is_sent_under_a_new_one(
    shop: Shop, simulator: Gateway
) -> None:
    simulator.add_fault("error_400_kept_before", PATH)
    assert shop.pay(key="k1").status_code == 503
    # The cause is repaired; under the old downstream key the gateway would go on saying no.
    assert shop.pay(key="k1").status_code == 201
    first, second = (send["idempotency_key"] for send in sends(simulator))
    assert first != second
    assert len(simulator.effects()) == 1


def test_h11_an_open_breaker_leaves_the_key_free(
    shop: Shop, simulator: Gateway, settings: LazySettings
) -> None:
    settings.PAYMENTS = {
        **settings.PAYMENTS,
        "BREAKER_MIN_CALLS": 2,
        "BREAKER_OPEN": 0.3,
        "GATEWAY_ATTEMPTS": 1,
    }
    simulator.add_fault("error_500_before", PATH, times=2)
    for number in range(2):
        assert shop.pay(key=f"k{number}").status_code == 504
    refused = shop.pay(key="k1-open")
    assert refused.status_code == 503
    assert refused.json()["code"] == "circuit-open"
    assert int(refused["Retry-After"]) >= 1
    assert len(sends(simulator)) == 2


def test_r14_a_decline_is_stored_and_not_sent_again(shop: Shop, simulator: Gateway) -> None:
    answers = [shop.pay(key="k1", source="pm_card_chargeDeclined") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [402, 402]
    assert answers[0].content == answers[1].content
    assert len(sends(simulator)) == 1
    assert journalled_sends() == 1
