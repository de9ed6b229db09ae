"""The deployment behind an async server: a thread for each request, and callers that leave."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from django.db import connection

from idempotency.models import Key
from project import parts
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
CARD = {"amount": 500, "currency": "EUR", "source": "pm_card_visa"}
TOGETHER = 8
REQUESTS = 120


@pytest.fixture
def before(transactional_db: None) -> set[int]:
    """Return the connections that earlier tests of this process have left."""
    return connections()


@pytest.fixture
def stack(live_stack: Stack, before: set[int]) -> Stack:
    port = live_stack.ports["web"]
    served = ("-m", "uvicorn", "--port", str(port), "project.asgi:application")
    live_stack.start("simulator")
    live_stack.launch(replace(parts.web(port=port), words=served))
    return live_stack


def test_no_connection_outlives_its_request(stack: Stack, before: set[int]) -> None:
    def pay(number: int) -> int:
        key = f"k{number}"
        return stack.post("/api/payments/", CARD | {"order_id": key}, key=key).status_code

    with ThreadPoolExecutor(TOGETHER) as threads:
        assert set(threads.map(pay, range(REQUESTS))) == {201}
    stack.wait_until(lambda: connections() <= before, "every connection is closed", seconds=10)


def test_r18_a_charge_whose_caller_left_is_made_and_kept(stack: Stack, before: set[int]) -> None:
    slow = {"path": "/v1/payment_intents", "kind": "slow_after", "seconds": 1, "times": 1}
    stack.simulate("POST", "/_sim/faults", slow)
    body = json.dumps(CARD | {"order_id": "left"})
    with socket.create_connection(("127.0.0.1", stack.ports["web"]), 10) as caller:
        caller.sendall(
            "POST /api/payments/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Authorization: Token demo-merchant-a\r\nIdempotency-Key: left\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        stack.wait_until(lambda: len(stack.effects()) == 1, "the charge is made")
    stack.wait_until(
        lambda: Key.objects.get().state == "completed", "its answer is kept", seconds=10
    )
    again = stack.post("/api/payments/", CARD | {"order_id": "left"}, key="left")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert len(stack.effects()) == 1
    stack.wait_until(lambda: connections() <= before, "every connection is closed", seconds=10)


def connections() -> set[int]:
    """Return the server processes behind the connections of web processes, this test's own among them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name = 'idempotency-ledger-web'"
        )
        return {pid for (pid,) in cursor.fetchall()}
