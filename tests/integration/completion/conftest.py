"""A merchant with an endpoint on a real socket."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models.functions import Now

from idempotency.models import Key
from idempotency.operations import runner
from payments.gateway.fake import FakeGateway
from payments.models import Delivery, Endpoint
from tests.integration.payments.conftest import Shop, fake, no_broker, rival, shop
from tests.support.faultserver import Exchange, Fault, FaultServer, serving

__all__ = ["fake", "no_broker", "rival", "shop"]

Line = int | tuple[int, str] | Callable[[Exchange], None]
"""A status, with header lines where they matter; or what is done to the exchange."""


@dataclass
class Receiver:
    """What an endpoint does, line by line of a script, and all that arrived there; the last line is repeated."""

    script: list[Line] = field(default_factory=lambda: [204])
    arrived: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def __call__(self, exchange: Exchange) -> None:
        raw = exchange.read_request()
        if not raw:
            return
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        headers = {n.decode().lower(): v.strip().decode() for n, _, v in lines}
        self.arrived.append((headers, body))
        line = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(line):
            line(exchange)
            return
        status, extra = line if isinstance(line, tuple) else (line, "")
        exchange.answer(b"", status=f"{status} Status", headers=extra)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.arrived]


def after_reading(fault: Fault) -> Fault:
    """Return the fault for an exchange whose request is read already."""

    def then(exchange: Exchange) -> None:
        exchange.read_request = lambda: b""  # type: ignore[method-assign]
        fault(exchange)

    return then


@pytest.fixture(autouse=True)
def _loopback(settings: LazySettings) -> None:
    settings.PAYMENTS = settings.PAYMENTS | {"ENDPOINT_PRIVATE": True, "ENDPOINT_TIMEOUT": 10}


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def server(receiver: Receiver) -> Iterator[FaultServer]:
    with ExitStack() as stack:
        yield stack.enter_context(serving(receiver))


@dataclass
class Hearing:
    """A merchant's endpoint, as registered through the API."""

    shop: Shop
    id: str
    secret: str

    @property
    def row(self) -> Endpoint:
        found: Endpoint = Endpoint.objects.get(pk=self.id)
        return found

    @property
    def path(self) -> str:
        return f"/api/webhook-endpoints/{self.id}/"


def listen(shop: Shop, url: str, **body: Any) -> Hearing:
    made = shop.client.post("/api/webhook-endpoints/", {"url": url, **body}, format="json")
    assert made.status_code == 201, made.content
    return Hearing(shop, made.json()["id"], made.json()["secret"])


@pytest.fixture
def hearing(shop: Shop, server: FaultServer, fake: FakeGateway, no_broker: None) -> Hearing:
    return listen(shop, f"{server.url}/events")


def work() -> None:
    """Run what is due."""
    while runner.run() is not None:
        pass


def work_now() -> None:
    """Let the pause of what waits be over, and run it."""
    Key.objects.filter(due_at__isnull=False).update(due_at=Now())
    Endpoint.objects.update(failed_at=None)
    work()


def delivery() -> Delivery:
    found: Delivery = Delivery.objects.get()
    return found
