"""A worker is killed while it waits for a merchant's endpoint: the event arrives again, under the same id."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.conf import LazySettings

from payments import completion
from payments.completion.endpoints import EndpointOrder
from payments.models import Delivery, Merchant
from tests.faults.operations.conftest import let_lapse
from tests.integration.completion.conftest import Receiver
from tests.support.faultserver import Exchange, FaultServer, serving
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.sampled(2)]


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def server(receiver: Receiver) -> Iterator[FaultServer]:
    with ExitStack() as stack:
        yield stack.enter_context(serving(receiver))


def delivered() -> bool:
    return bool(Delivery.objects.get().status == "delivered")


def test_a_worker_killed_between_send_and_settlement(
    live_stack: Stack, receiver: Receiver, server: FaultServer, settings: LazySettings
) -> None:
    stack = live_stack
    stack.environment |= {"IDEMPOTENCY_WAKE_EVERY": "0.5", "IDEMPOTENCY_RECONCILE_EVERY": "0.5"}

    def kill_the_worker(exchange: Exchange) -> None:
        stack.kill("worker")
        exchange.hang()

    receiver.script = [kill_the_worker, 204]
    settings.PAYMENTS = settings.PAYMENTS | {"ENDPOINT_PRIVATE": True}
    merchant = Merchant.objects.get(slug="merchant-a")
    completion.register(merchant=merchant, order=EndpointOrder(url=f"{server.url}/events"))
    stack.start("simulator", "web", "worker", "beat")
    order = {"order_id": "1", "amount": 100, "currency": "UAH", "source": "pm_card_visa"}
    assert stack.post("/api/payments/", order, key="k1").status_code == 201

    stack.wait_until(lambda: "worker" not in stack.processes, "the worker is killed")
    let_lapse()
    stack.start("worker")
    stack.wait_until(delivered, "the event is delivered")

    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1
    assert len({body for _, body in receiver.arrived}) == 1
    assert len(stack.effects()) == 1
