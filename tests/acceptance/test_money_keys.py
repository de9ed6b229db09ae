"""One key over real processes: what it replays and to whom, what it refuses, and what leaves it free."""

import json
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.db import connection

from idempotency.models import Key
from tests.support.servers import servers
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
ORDER = {"order_id": "881", "amount": 1200, "currency": "EUR", "source": "pm_card_visa"}
PAYMENTS = "/api/payments/"


@pytest.fixture
def stack(shared_stack: Stack) -> Stack:
    return shared_stack


def same(one: requests.Response, other: requests.Response) -> bool:
    """Whether a repeat heard the very same answer."""
    parts = [(r.status_code, r.content, r.headers["Content-Type"]) for r in (one, other)]
    return parts[0] == parts[1] and other.headers.get("Idempotent-Replayed") == "true"


def test_r16_a_replay_outlives_a_restart_of_everything(live_stack: Stack) -> None:
    stack = live_stack
    stack.start("simulator", "web")
    paid = stack.post(PAYMENTS, ORDER, key="k1")
    assert paid.status_code == 201

    stack.stop("web")
    stack.kill("simulator")
    connection.close()
    for server in (servers.store, servers.postgres):
        # Servers that the environment named belong to somebody else.
        if server is not None:
            server.stop()
            server.start()
    stack.start("simulator", "web")

    assert same(paid, stack.post(PAYMENTS, ORDER, key="k1"))
    assert len(stack.effects()) == 1


def test_a_key_means_one_request_of_one_caller(stack: Stack) -> None:
    paid = stack.post(PAYMENTS, ORDER, key="k1")

    other_payload = stack.post(PAYMENTS, {**ORDER, "amount": 1201}, key="k1")
    assert (other_payload.status_code, other_payload.json()["code"]) == (422, "key-reused")
    assert same(paid, stack.post(PAYMENTS, ORDER, key="k1"))

    # R5, R6: another caller's, and another endpoint's, are keys of their own.
    other_caller = stack.post(PAYMENTS, ORDER, key="k1", token="demo-merchant-b")
    assert other_caller.status_code == 201
    assert other_caller.json()["id"] != paid.json()["id"]
    payout = {"amount": 5, "currency": "EUR", "destination": "acct_1Tests"}
    assert stack.post("/api/payouts/", payout, key="k1").status_code == 202
    assert len(stack.effects()) == 2


def test_r6_a_path_argument_is_part_of_the_request(stack: Stack) -> None:
    one, other = (stack.post(PAYMENTS, ORDER, key=key).json()["id"] for key in ("k1", "k2"))
    first = stack.post(f"{PAYMENTS}{one}/refunds/", {"amount": 100}, key="r")
    assert first.status_code == 202
    reused = stack.post(f"{PAYMENTS}{other}/refunds/", {"amount": 100}, key="r")
    assert (reused.status_code, reused.json()["code"]) == (422, "key-reused")
    assert same(first, stack.post(f"{PAYMENTS}{one}/refunds/", {"amount": 100}, key="r"))


@pytest.mark.parametrize(
    "text",
    [
        '{"source":"pm_card_visa","currency":"EUR","amount":1200,"order_id":"881"}',
        '{ "order_id" : "\\u0038\\u0038\\u0031", "amount": 1200, "currency":"EUR","source":"pm_card_visa" }',
    ],
    ids=["order of members", "blanks and escapes"],
)
def test_r7_the_same_json_written_otherwise_is_the_same_request(stack: Stack, text: str) -> None:
    paid = stack.post(PAYMENTS, ORDER, key="k1")
    assert same(paid, raw(stack, text, key="k1"))


def test_r7_json_that_means_two_things_is_refused_and_leaves_the_key_free(stack: Stack) -> None:
    twice = '{"amount": 1, "amount": 1200, "order_id": "881", "currency": "EUR", "source": "pm_card_visa"}'
    assert raw(stack, twice, key="k1").status_code == 400
    assert stack.post(PAYMENTS, ORDER, key="k1").status_code == 201


def test_a_decline_is_replayed_and_charges_nothing(stack: Stack) -> None:
    order = {**ORDER, "source": "pm_card_chargeDeclined"}
    declined = stack.post(PAYMENTS, order, key="k1")
    assert (declined.status_code, declined.json()["code"]) == (402, "payment-declined")
    assert same(declined, stack.post(PAYMENTS, order, key="k1"))
    assert stack.effects() == []


def test_r14_a_400_leaves_the_key_free_for_the_corrected_body(stack: Stack) -> None:
    assert stack.post(PAYMENTS, {**ORDER, "amount": -1}, key="k1").status_code == 400
    paid = stack.post(PAYMENTS, ORDER, key="k1")
    assert (paid.status_code, len(stack.effects())) == (201, 1)
    assert "Idempotent-Replayed" not in paid.headers


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        '""',
        "a b",
        "a,b",
        '"a',
        'a"',
        "a\\b",
        "ключ".encode(),
        "x" * 256,
        "(a b)",
        '"a", "b"',
    ],
)
def test_r3_a_malformed_key_is_refused_and_nothing_happens(stack: Stack, key: str | bytes) -> None:
    refused = raw(stack, json.dumps(ORDER), key=key)
    assert (refused.status_code, refused.json()["code"]) == (400, "key-invalid")
    assert stack.effects() == []
    assert not Key.objects.exists()


def test_r3_quoted_and_bare_are_one_key_and_none_is_refused(stack: Stack) -> None:
    paid = stack.post(PAYMENTS, ORDER, key='"k1"')
    assert same(paid, stack.post(PAYMENTS, ORDER, key="k1"))
    missing = stack.post(PAYMENTS, ORDER)
    assert (missing.status_code, missing.json()["code"]) == (400, "key-missing")


def test_r18_a_client_that_hangs_up_while_it_is_charged_finds_its_answer(stack: Stack) -> None:
    stack.simulate("PUT", "/_sim/config", {"latency": 1.0})
    send_and_leave(stack, json.dumps(ORDER).encode(), key="k1")
    assert stack.post(PAYMENTS, ORDER, key="k1").status_code in (201, 409)

    def answered() -> Any:
        found = stack.post(PAYMENTS, ORDER, key="k1")
        return found if found.status_code == 201 else None

    answer = stack.wait_until(answered, "the work of the client that left is kept")
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert len(stack.effects()) == 1


def test_a_client_that_leaves_in_the_middle_of_its_body_has_asked_for_nothing(stack: Stack) -> None:
    body = json.dumps(ORDER).encode()
    send_and_leave(stack, body[: len(body) // 2], key="k1", length=len(body))
    assert stack.get("/healthz/").status_code == 200
    paid = stack.post(PAYMENTS, ORDER, key="k1")
    assert (paid.status_code, len(stack.effects())) == (201, 1)


# -- requests as no client library sends them ----------------------------------------------------


def raw(stack: Stack, text: str, *, key: str | bytes) -> requests.Response:
    """Post a body exactly as it is written, under a key exactly as it is written."""
    with requests.Session() as http:
        http.trust_env = False
        prepared = requests.Request(
            "POST",
            stack.web_url + PAYMENTS,
            data=text,
            headers={
                "Authorization": "Token demo-merchant-a",
                "Content-Type": "application/json",
            },
        ).prepare()
        prepared.headers["Idempotency-Key"] = key  # type: ignore[assignment]
        return http.send(prepared, timeout=20)


def send_and_leave(stack: Stack, body: bytes, *, key: str, length: int | None = None) -> None:
    """Send a request, or the part of it that is given, wait until it has arrived, and hang up."""
    at = urlsplit(stack.web_url)
    head = (
        f"POST {PAYMENTS} HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Token demo-merchant-a\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length or len(body)}\r\n"
        f"Idempotency-Key: {key}\r\n\r\n"
    )
    with socket.create_connection((at.hostname, at.port), timeout=10) as client:
        client.sendall(head.encode() + body)
        # Nothing tells a client that its bytes were read: the server answers later, or never.
        time.sleep(0.5)
