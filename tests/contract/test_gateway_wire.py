"""What leaves for the gateway, and in which time: Stripe's adapter over real sockets."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

import pytest
import stripe

from idempotency.exceptions import (
    AccountRefused,
    CallFailed,
    CallUnknown,
    UnjournalledCall,
)
from payments.gateway.stripe import API_VERSION
from tests.contract.simulator_process import Gateway, running
from tests.support.faultserver import Exchange, serving
from tests.support.gateways import (
    API_KEY,
    PATH,
    charge,
    charge_params,
    gateway_at,
    outside_request,
)

SUCCEEDED = {
    "id": "pi_1",
    "object": "payment_intent",
    "status": "succeeded",
    "amount": 1000,
    "currency": "eur",
    "metadata": {},
}


@pytest.fixture(scope="module")
def running_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(tmp_path_factory.mktemp("simulator")) as simulator:
        yield simulator


@pytest.fixture
def simulator(running_simulator: Gateway) -> Gateway:
    running_simulator.control("POST", "reset")
    return running_simulator


def recording(seen: list[bytes], *, answers: Mapping[str, Any] = SUCCEEDED) -> Callable[..., None]:
    """Return a peer that keeps each request as it arrived, and answers it as Stripe marks it."""

    def answer(exchange: Exchange) -> None:
        while raw := exchange.read_request():
            seen.append(raw)
            exchange.answer(json.dumps(answers).encode(), headers="Request-Id: req_1\r\n")

    return answer


def head_and_body(raw: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = (line.partition(": ") for line in head.decode().split("\r\n")[1:])
    return {name.lower(): value for name, _, value in lines}, body


# -- what is sent ------------------------------------------------------------------------------------------------------


GOLDEN = (
    b"amount=1000&automatic_payment_methods[allow_redirects]=never"
    b"&automatic_payment_methods[enabled]=true&confirm=true&currency=eur"
    b"&description=Tee+%26+Kaffee+%3D+10+%E2%82%AC&error_on_requires_action=true"
    b"&metadata[order_id]=o-1&metadata[reference]=payment-1&metadata[idempotency_key]=key-1"
    b"&payment_method=pm_card_visa"
)


def test_r23_the_body_and_the_key_are_ours_to_the_byte() -> None:
    seen: list[bytes] = []
    with serving(recording(seen)) as peer:
        charge(gateway_at(peer.url))
    headers, body = head_and_body(seen[0])
    assert headers["idempotency-key"] == "key-1"
    assert headers["stripe-version"] == API_VERSION
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    assert headers["authorization"] == f"Bearer {API_KEY}"
    assert body == GOLDEN


def test_r23_a_newer_client_sends_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    with serving(recording(seen)) as peer:
        charge(gateway_at(peer.url))
        monkeypatch.setattr("stripe._api_requestor._api_encode", lambda _: [("of", "today")])
        monkeypatch.setattr("stripe._api_requestor.VERSION", "99.0.0")
        monkeypatch.setattr("stripe._api_version._ApiVersion.CURRENT", "2099-01-01.future")
        charge(gateway_at(peer.url))
    (first, body), (second, again) = (head_and_body(raw) for raw in seen)
    assert second["user-agent"] != first["user-agent"]
    assert again == body
    assert second["stripe-version"] == first["stripe-version"]


def test_our_encoding_is_the_one_that_the_official_client_would_make() -> None:
    seen: list[bytes] = []
    with serving(recording(seen)) as peer:
        made = gateway_at(peer.url)
        charge(made)
        client = stripe.StripeClient("sk_test_x", base_addresses={"api": peer.url})
        asked: Any = charge_params(made)
        asked = {**asked, "metadata": {**asked["metadata"], "idempotency_key": "key-1"}}
        client.v1.payment_intents.create(asked)
    bodies = [head_and_body(raw)[1].decode() for raw in seen]
    assert sorted(parse_qsl(bodies[0])) == sorted(parse_qsl(bodies[1]))


def test_r23_every_send_of_a_series_is_the_same_to_the_byte() -> None:
    seen: list[bytes] = []

    def answer(exchange: Exchange) -> None:
        seen.append(exchange.read_request())
        if len(seen) < 3:
            exchange.reset()
        else:
            body = json.dumps(SUCCEEDED).encode()
            exchange.answer(body, headers="Request-Id: req_1\r\n")

    with serving(answer) as peer:
        charge(gateway_at(peer.url))
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_r23_another_body_under_a_key_is_never_a_no(simulator: Gateway) -> None:
    made = gateway_at(simulator.url)
    charge(made)
    with pytest.raises(CallUnknown):
        charge(made, amount=999)
    assert len(simulator.effects()) == 1


def test_r13_a_send_without_a_journal_is_refused(simulator: Gateway) -> None:
    made = gateway_at(simulator.url)
    with pytest.raises(UnjournalledCall):
        made.charge(outside_request(charge_params(made)))
    assert simulator.requests() == []


# -- time --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["drip", "drip_body_after", "hang_mid_headers_after"])
def test_r26_a_dripping_peer_ends_at_the_attempts_deadline(simulator: Gateway, kind: str) -> None:
    simulator.add_fault(kind, PATH, seconds=20)
    began = time.monotonic()
    with pytest.raises(CallUnknown):
        charge(gateway_at(simulator.url, attempts=1, attempt_timeout=0.6))
    assert 0.55 <= time.monotonic() - began < 5


def test_r25_retry_after_is_waited_for(simulator: Gateway) -> None:
    simulator.add_fault("refuse_503", PATH, retry_after="1")
    began = time.monotonic()
    charge(gateway_at(simulator.url))
    assert time.monotonic() - began >= 1
    assert len(simulator.requests()) == 2


@pytest.mark.parametrize("kind", ["refuse_503", "rate_limit_429"])
def test_r25_a_word_beyond_the_deadline_ends_the_series(simulator: Gateway, kind: str) -> None:
    simulator.add_fault(kind, PATH, retry_after="30")
    began = time.monotonic()
    with pytest.raises(CallFailed) as raised:
        charge(gateway_at(simulator.url), within=5)
    assert time.monotonic() - began < 4
    assert (raised.value.retry_after, raised.value.sent) == (30.0, True)
    assert len(simulator.requests()) == 1


@pytest.mark.parametrize("word", ["-1", "1.5", "1e3", "soon", ["30", "30"]])
def test_r25_a_malformed_word_is_no_word(simulator: Gateway, word: object) -> None:
    simulator.add_fault("rate_limit_429", PATH, retry_after=word)
    began = time.monotonic()
    charge(gateway_at(simulator.url), within=5)
    assert time.monotonic() - began < 4
    assert len(simulator.requests()) == 2


def test_r26_with_too_little_time_nothing_is_sent(simulator: Gateway) -> None:
    with pytest.raises(CallFailed) as raised:
        charge(gateway_at(simulator.url), within=0.05)
    assert (raised.value.code, raised.value.sent) == ("no-time", False)
    assert simulator.requests() == []


def test_r24_a_gateway_that_cannot_be_reached_was_sent_nothing() -> None:
    with serving(lambda _: None) as gone:
        url = gone.url
    with pytest.raises(CallFailed) as raised:
        charge(gateway_at(url))
    assert not raised.value.sent
    assert raised.value.report is not None
    assert raised.value.report.attempts == 3


# -- one layer retries -------------------------------------------------------------------------------------------------


def test_h2_a_connection_that_the_peer_closed_is_not_resent_on(simulator: Gateway) -> None:
    made = gateway_at(simulator.url)
    simulator.add_fault("idle_close_after", PATH)
    simulator.add_fault("idle_reset_after", PATH)
    for number in range(3):
        charge(made, key=f"key-{number}", reference=f"payment-{number}")
    assert len(simulator.requests()) == 3
    assert len(simulator.effects()) == 3


def test_h2_a_reset_on_a_reused_connection_is_not_resent(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, attempts=1)
    charge(made)
    simulator.add_fault("reset_before", PATH)
    with pytest.raises(CallUnknown):
        charge(made, key="key-2", reference="payment-2")
    assert len(simulator.requests()) == 2


def test_h2_the_official_client_retries_nothing_by_itself(simulator: Gateway) -> None:
    # Stripe-Should-Retry is true in this answer, and the client's own retries would obey it.
    simulator.add_fault("refuse_503", PATH, times=5)
    with pytest.raises(CallFailed):
        charge(gateway_at(simulator.url, attempts=1))
    assert len(simulator.requests()) == 1


def test_r24_a_key_in_use_is_waited_for_under_the_same_key(simulator: Gateway) -> None:
    simulator.configure(latency=0.4)
    results: list[Any] = []
    twins = [
        threading.Thread(
            target=lambda: results.append(charge(gateway_at(simulator.url, attempts=20, base=0.1)))
        )
        for _ in range(2)
    ]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join()
    assert len(results) == 2
    assert results[0] == results[1]
    statuses = [request["status"] for request in simulator.requests()]
    assert 409 in statuses
    assert len(simulator.effects()) == 1


def test_r33_refused_credentials_are_said_to_be_all_calls(simulator: Gateway) -> None:
    """And have no vote in the breaker, which other accounts may share (H10)."""
    made = gateway_at(simulator.url, api_key="not-a-key")
    with pytest.raises(AccountRefused) as raised:
        charge(made)
    assert (raised.value.retry_after, raised.value.sent) == (300.0, True)
    assert len(simulator.requests()) == 1
    assert simulator.effects() == []
