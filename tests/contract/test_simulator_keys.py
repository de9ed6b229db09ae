"""Idempotency keys at the simulator, as Stripe keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import stripe

from tests.contract.simulator_process import Gateway, eventually, running


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    data_dir: Path = tmp_path_factory.mktemp("gateway")
    with running(data_dir) as gateway:
        yield gateway


@pytest.fixture
def gateway(process: Gateway) -> Gateway:
    process.control("POST", "reset")
    return process


def test_the_same_request_is_replayed(gateway: Gateway) -> None:
    first = gateway.charge(key="k1")
    second = gateway.charge(key="k1")

    assert first.last_response is not None
    assert second.last_response is not None
    assert second.last_response.body == first.last_response.body
    assert second.last_response.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.last_response.headers
    original = second.last_response.headers["Original-Request"]
    assert original == first.last_response.headers["Request-Id"]
    assert len(gateway.effects()) == 1


def test_a_decline_is_replayed(gateway: Gateway) -> None:
    replayed = []
    for _ in range(2):
        with pytest.raises(stripe.CardError) as declined:
            gateway.charge(key="k1", token="pm_card_chargeDeclined")
        replayed.append((declined.value.headers or {}).get("Idempotent-Replayed"))
    assert replayed == [None, "true"]


def test_another_body_under_the_key_is_refused(gateway: Gateway) -> None:
    gateway.charge(key="k1")
    with pytest.raises(stripe.IdempotencyError) as refused:
        gateway.charge(key="k1", amount=2000)
    assert refused.value.http_status == 400
    assert len(gateway.effects()) == 1


def test_another_path_under_the_key_is_refused(gateway: Gateway) -> None:
    intent = gateway.charge(key="k1")
    with gateway.client() as client, pytest.raises(stripe.IdempotencyError):
        client.v1.refunds.create({"payment_intent": intent.id}, {"idempotency_key": "k1"})


def test_a_key_in_use_is_refused_with_409(gateway: Gateway) -> None:
    gateway.configure(latency=0.5)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(gateway.charge, key="k1")
        eventually(gateway.requests, lambda received: len(received) == 1)
        with pytest.raises(stripe.APIError) as refused:
            gateway.charge(key="k1")
        assert first.result().status == "succeeded"
    assert refused.value.http_status == 409
    assert refused.value.error is not None
    assert refused.value.error.code == "idempotency_key_in_use"
    assert (refused.value.headers or {})["Stripe-Should-Retry"] == "true"
    assert len(gateway.effects()) == 1


def test_a_key_is_forgotten_after_its_time(gateway: Gateway) -> None:
    first = gateway.charge(key="k1")
    gateway.configure(key_ttl=0)
    second = gateway.charge(key="k1")
    assert first.id != second.id
    assert len(gateway.effects()) == 2


def test_keys_can_be_ignored(gateway: Gateway) -> None:
    gateway.configure(idempotency=False)
    assert gateway.charge(key="k1").id != gateway.charge(key="k1").id
    assert [effect["idempotency_key"] for effect in gateway.effects()] == ["k1", "k1"]


def test_no_keys_is_a_flag_that_survives_a_reset(tmp_path: Path) -> None:
    with running(tmp_path, "--no-keys") as gateway:
        gateway.control("POST", "reset")
        assert gateway.control("GET", "config")["idempotency"] is False
        assert gateway.charge(key="k1").id != gateway.charge(key="k1").id


def test_twenty_threads_with_one_key_have_one_effect(gateway: Gateway) -> None:
    gateway.configure(latency=0.05)
    outcomes = _together(gateway, keys=["k1"] * 20)
    assert set(outcomes) <= {"succeeded", "409"}
    assert "succeeded" in outcomes
    assert len(gateway.effects()) == 1


def test_twenty_threads_with_twenty_keys_have_twenty_effects(gateway: Gateway) -> None:
    outcomes = _together(gateway, keys=[f"k{number}" for number in range(20)])
    assert outcomes == ["succeeded"] * 20
    assert len(gateway.effects()) == 20
    assert len(gateway.requests()) == 20


def _together(gateway: Gateway, *, keys: list[str]) -> list[str]:
    barrier = Barrier(len(keys))

    def charge(key: str) -> str:
        barrier.wait()
        try:
            return gateway.charge(key=key, timeout=20).status
        except stripe.APIError as error:
            return str(error.http_status)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(charge, keys))


def test_a_fault_strikes_exactly_as_often_as_asked_under_concurrency(gateway: Gateway) -> None:
    gateway.add_fault("refuse_503", times=7)
    outcomes = _together(gateway, keys=[f"k{number}" for number in range(20)])
    assert sorted(outcomes) == ["503"] * 7 + ["succeeded"] * 13
    assert len(gateway.effects()) == 13
