"""A 202 whatever the broker does, in under two seconds, and the work is done once (G3; celery#4354, #6911)."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from kombu import Connection

from idempotency.models import Operation
from project.embedded.server import Server, free_port
from tests.faults.operations.conftest import key_of, work_of
from tests.support.servers import servers
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150), pytest.mark.sampled(3)]
PAYOUT = {"amount": 700, "currency": "EUR", "destination": "acct_1Tests"}
TOGETHER = 20


def post_together(stack: Stack, *, count: int = TOGETHER) -> list[str]:
    """Promise payouts side by side; return their operations' ids."""

    def post(number: int) -> tuple[int, str, float]:
        began = time.monotonic()
        answer = stack.post("/api/payouts/", PAYOUT, key=f"k{number}", timeout=30)
        return answer.status_code, answer.json().get("id", ""), time.monotonic() - began

    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(post, range(count)))
    assert {status for status, _, _ in answers} == {202}
    # Each request alone; together they share one web process, so none may have waited for a broker's timeout.
    assert max(seconds for _, _, seconds in answers) < 2
    return [operation for _, operation, _ in answers]


def all_done(stack: Stack, operations: list[str]) -> None:
    stack.wait_until(
        lambda: Operation.objects.filter(result__isnull=False).count() == len(operations),
        "every operation ends",
        seconds=60,
    )
    assert {key_of(each).state for each in operations} == {"completed"}
    assert {work_of(each).attempts for each in operations} == {1}
    assert len(stack.effects()) == len(operations)


@contextmanager
def refusing() -> Iterator[str]:
    yield address(free_port())


@contextmanager
def accepting_and_silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield address(server.getsockname()[1])


def address(port: int) -> str:
    return f"amqp://127.0.0.1:{port}//" if servers.broker else f"redis://127.0.0.1:{port}/0"


@pytest.mark.parametrize("broker_that_is", [refusing, accepting_and_silent])
def test_no_broker_delays_or_loses_a_202(
    stack: Stack,
    broker_that_is: Callable[[], "contextmanager[str]"],  # type: ignore[valid-type]
) -> None:
    with broker_that_is() as url:  # type: ignore[attr-defined]
        stack.start("simulator")
        stack.start_web(environment={"CELERY_BROKER_URL": url})
        stack.get("/healthz/")
        operations = post_together(stack)
    # The web process spoke to a dead broker; the workers have another one, and only the rows to go by.
    stack.start("worker", "beat")
    all_done(stack, operations)


def test_a_broker_stopped_in_mid_request(stack: Stack, broker: Server) -> None:
    stack.environment["CELERY_BROKER_URL"] = broker.url
    stack.start("simulator", "web", "worker")
    warm = str(stack.post("/api/payouts/", PAYOUT, key="warm").json()["id"])
    all_done(stack, [warm])
    assert broker.process is not None

    os.killpg(broker.process.pid, signal.SIGSTOP)
    try:
        operations = post_together(stack)
    finally:
        os.killpg(broker.process.pid, signal.SIGCONT)
    stack.start("beat")
    all_done(stack, [warm, *operations])


def test_messages_that_the_broker_forgot(stack: Stack, broker: Server) -> None:
    stack.environment["CELERY_BROKER_URL"] = broker.url
    stack.start("simulator", "web")
    operations = post_together(stack)
    with Connection(broker.url) as client:
        channel: Any = client.channel()
        stack.wait_until(
            lambda: channel.queue_declare("celery", passive=True).message_count == TOGETHER,
            "the nudges are published",
        )
        assert channel.queue_purge("celery") == TOGETHER

    stack.start("worker", "beat")
    all_done(stack, operations)


def test_4354_messages_that_a_frozen_worker_took_with_it(stack: Stack) -> None:
    stack.start("simulator", "web", "worker")
    stack.freeze("worker")
    operations = post_together(stack)
    stack.kill("worker")

    stack.start_worker(name="next")
    stack.start("beat")
    all_done(stack, operations)


def test_a_broker_that_is_restarted_five_times(stack: Stack, broker: Server) -> None:
    stack.environment["CELERY_BROKER_URL"] = broker.url
    stack.start("simulator", "web", "worker", "beat")
    operations = []
    for number in range(5):
        answer = stack.post("/api/payouts/", PAYOUT, key=f"r{number}")
        assert answer.status_code == 202
        operations.append(str(answer.json()["id"]))
        broker.stop()
        answer = stack.post("/api/payouts/", PAYOUT, key=f"s{number}")
        assert (answer.status_code, answer.elapsed.total_seconds() < 2) == (202, True)
        operations.append(str(answer.json()["id"]))
        broker.start()
    all_done(stack, operations)


def test_r32_the_command_rescues_what_hung_workers_do_not(stack: Stack) -> None:
    from django.core.management import call_command

    stack.start("simulator", "web", "worker", "beat")
    stack.freeze("worker")
    answer = stack.post(
        "/api/receipts/", {"payment": _payment(stack), "email": "a@example.org", "text": "hello"}
    )
    assert answer.status_code == 202

    call_command("idempotency_wake", "--run")

    assert key_of(answer.json()["id"]).state == "completed"


def _payment(stack: Stack) -> str:
    body = {"order_id": "o-1", "amount": 900, "currency": "EUR", "source": "pm_card_visa"}
    answer = stack.post("/api/payments/", body, key="p-1")
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
