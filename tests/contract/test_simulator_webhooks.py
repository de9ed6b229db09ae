"""Webhooks: signed as Stripe does, sent as configured, kept until accepted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import stripe

from tests.contract.simulator_process import Gateway, eventually, running

SECRET = "whsec_test"


class Receiver(ThreadingHTTPServer):
    """A webhook endpoint that keeps what it was sent, and answers `status`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Endpoint)
        self.received: list[tuple[bytes, str]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?x=1"

    def events(self) -> list[stripe.Event]:
        return [
            stripe.Webhook.construct_event(body, signature, SECRET)
            for body, signature in list(self.received)
        ]

    def types(self) -> list[str]:
        return [event.type for event in self.events()]


class _Endpoint(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((body, self.headers["Stripe-Signature"]))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def gateway(tmp_path: Path, receiver: Receiver) -> Iterator[Gateway]:
    with running(tmp_path, "--webhook-url", receiver.url, "--webhook-secret", SECRET) as gateway:
        yield gateway


def test_an_event_is_signed_and_sent_once(gateway: Gateway, receiver: Receiver) -> None:
    assert gateway.control("GET", "config")["webhooks"] == "once"
    intent = gateway.charge(key="k1")

    eventually(lambda: _states(gateway), lambda states: states == ["delivered"])
    [event] = receiver.events()
    assert (event.type, event.livemode) == ("payment_intent.succeeded", False)
    sent: Any = event.data.object
    assert (sent["id"], sent["metadata"]["reference"]) == (intent.id, "ref-1")
    assert event.request is not None
    assert event.request.idempotency_key == "k1"


def test_a_wrong_secret_does_not_verify(gateway: Gateway, receiver: Receiver) -> None:
    gateway.charge()
    [(body, signature)] = eventually(lambda: list(receiver.received), bool)
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(body, signature, "whsec_other")


def test_each_change_has_its_events(gateway: Gateway, receiver: Receiver) -> None:
    intent = gateway.charge(token="pm_card_processing")
    gateway.control("POST", "webhooks", {"settle": intent.id, "as": "succeeded"})
    with pytest.raises(stripe.CardError):
        gateway.charge(token="pm_card_chargeDeclined")
    with gateway.client() as client:
        client.v1.refunds.create({"payment_intent": intent.id, "amount": 1})
        client.v1.payouts.create({"amount": 1, "currency": "eur", "destination": "acct_x"})
    expected = {
        "payment_intent.processing", "payment_intent.succeeded", "payment_intent.payment_failed",
        "refund.created", "charge.refunded", "refund.updated", "payout.created", "payout.paid",
    }  # fmt: skip
    eventually(receiver.types, lambda types: set(types) == expected and len(types) == 8)


def test_twice_sends_the_same_event_twice(gateway: Gateway, receiver: Receiver) -> None:
    gateway.configure(webhooks="twice")
    gateway.charge()
    eventually(lambda: _states(gateway), lambda states: states == ["delivered"] * 2)
    first, second = receiver.events()
    assert first.id == second.id


def test_reordered_sends_the_newest_first(gateway: Gateway, receiver: Receiver) -> None:
    gateway.configure(webhooks="reordered")
    intent = gateway.charge()
    with gateway.client() as client:
        client.v1.refunds.create({"payment_intent": intent.id})
    types = eventually(receiver.types, lambda types: len(types) == 4)
    assert types == [
        "refund.updated",
        "charge.refunded",
        "refund.created",
        "payment_intent.succeeded",
    ]


def test_before_answer_arrives_before_the_answer(gateway: Gateway, receiver: Receiver) -> None:
    gateway.configure(webhooks="before-answer")
    gateway.charge()
    assert receiver.types() == ["payment_intent.succeeded"]


def test_off_keeps_events_until_they_are_sent_for(gateway: Gateway, receiver: Receiver) -> None:
    gateway.configure(webhooks="off")
    gateway.charge()
    assert _states(gateway) == []
    assert gateway.control("POST", "webhooks", {"send": "pending"}) == {"due": 1}
    eventually(receiver.types, lambda types: types == ["payment_intent.succeeded"])


def test_a_refused_event_is_sent_again_until_accepted(gateway: Gateway, receiver: Receiver) -> None:
    receiver.status = 500
    gateway.configure(webhook_backoff=0.05)
    gateway.charge()
    eventually(lambda: receiver.received, lambda received: len(received) >= 2)
    receiver.status = 204
    eventually(lambda: _states(gateway), lambda states: states == ["delivered"])


def test_an_event_is_given_up_after_its_attempts(gateway: Gateway, receiver: Receiver) -> None:
    receiver.status = 500
    gateway.configure(webhook_backoff=0.01, webhook_attempts=3)
    gateway.charge()
    eventually(lambda: _states(gateway), lambda states: states == ["gave_up"])
    assert len(receiver.received) == 3


def test_an_event_is_sent_again_on_demand_with_an_old_signature(
    gateway: Gateway, receiver: Receiver
) -> None:
    gateway.charge()
    eventually(lambda: _states(gateway), lambda states: states == ["delivered"])
    [event] = gateway.control("GET", "webhooks")

    answer = gateway.control("POST", "webhooks", {"resend": event["id"], "age": 43200})

    assert answer == {"status": 200}
    body, signature = receiver.received[1]
    with pytest.raises(stripe.SignatureVerificationError, match="tolerance"):
        stripe.Webhook.construct_event(body, signature, SECRET)


def test_what_is_undelivered_is_sent_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 500
    flags = ("--webhook-url", receiver.url, "--webhook-secret", SECRET)
    with running(tmp_path / "record", *flags) as gateway:
        gateway.configure(webhook_backoff=0.3)
        gateway.charge()
        eventually(lambda: receiver.received, bool)
        gateway.kill()
    receiver.status = 200
    with running(tmp_path / "record", *flags) as gateway:
        eventually(lambda: _states(gateway), lambda states: states == ["delivered"])


def test_a_silent_receiver_does_not_delay_the_end(tmp_path: Path) -> None:
    with Receiver() as silent:
        with running(tmp_path / "record", "--webhook-url", silent.url) as gateway:
            gateway.charge()
            eventually(lambda: _states(gateway), lambda states: states == ["pending"])
            begun = time.monotonic()
            gateway.process.terminate()
            assert gateway.process.wait(timeout=10) == 0
        assert time.monotonic() - begun < 3


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "send"),
        ({"send": "all"}, "send"),
        ({"resend": "evt_x"}, "resend"),
        ({"settle": "pi_x", "as": "succeeded"}, "settle"),
        ({"settle": "pi_x"}, "as"),
        ({"shout": 1}, "shout"),
    ],
)
def test_what_cannot_be_done_is_refused(gateway: Gateway, asked: object, field: str) -> None:
    assert gateway.refused_control("POST", "webhooks", asked) == field


def _states(gateway: Gateway) -> list[str]:
    return [
        delivery["state"]
        for event in gateway.control("GET", "webhooks")
        for delivery in event["deliveries"]
    ]
