"""What a client makes impossible: another key, another server, another layer that retries."""

import asyncio
import threading
import time
from typing import Any

import httpx2
import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from idempotency.client import (
    Answer,
    AsyncClient,
    Client,
    MemoryIntents,
    StillOpen,
)
from idempotency.exceptions import Misuse
from tests.contract.client.calling import (
    DONE,
    ORDER,
    POLICY,
    Make,
    pay,
)
from tests.support.faketime import FakeTime
from tests.support.faultserver import Exchange, FaultServer, serving
from tests.support.scripted import Script, keys, lost


def test_credentials_go_to_one_server_only(make: Make) -> None:
    with serving(Script((202, {}, "Location: https://evil.example/op/\r\n"))) as server:
        caller = make(server)
        with pytest.raises(Misuse):
            caller.follow(pay(caller))
        with pytest.raises(Misuse):
            caller.post("//evil.example/x", json={}, intent="n")
        with pytest.raises(Misuse):
            caller.follow(Answer(201))


def test_there_is_no_way_to_give_a_key(make: Make) -> None:
    """A key per attempt cannot be made by accident: nothing takes one."""
    with serving(Script(DONE)) as server:
        caller = make(server)
        for name in ("key", "idempotency_key", "headers"):
            with pytest.raises(TypeError):
                pay(caller, **{name: "k1"})
        with pytest.raises(TypeError):
            caller.post("/api/payments/", json=ORDER)


def test_a_sessions_own_key_does_not_win() -> None:
    with serving(Script(DONE)) as server, requests.Session() as session:
        session.headers["Idempotency-Key"] = "of-the-session"
        Client(server.url, store=MemoryIntents(), http=session).post("/", json={}, intent="n")
        assert keys(server) != ["of-the-session"]


def test_one_layer_retries() -> None:
    """H2: a session that repeats by itself is refused."""
    with requests.Session() as session:
        session.mount("http://", HTTPAdapter(max_retries=Retry(2)))
        with pytest.raises(Misuse, match="one layer"):
            Client("http://127.0.0.1", store=MemoryIntents(), http=session)


@pytest.mark.parametrize("http", [object(), httpx2.AsyncClient()])
def test_another_library_is_refused_at_once(http: Any) -> None:
    with pytest.raises(Misuse):
        Client("http://127.0.0.1", store=MemoryIntents(), http=http)
    if not isinstance(http, httpx2.AsyncClient):
        with pytest.raises(Misuse):
            AsyncClient("http://127.0.0.1", store=MemoryIntents(), http=http)


def test_h5_a_cancellation_is_passed_on_and_the_intent_stays_open() -> None:
    arrived = threading.Event()

    def hangs(exchange: Exchange) -> None:
        exchange.read_request()
        arrived.set()
        exchange.hang()

    async def cancelled(server: FaultServer, store: MemoryIntents) -> None:
        async with httpx2.AsyncClient() as http:
            client = AsyncClient(server.url, store=store, http=http)
            task = asyncio.create_task(client.post("/", json=ORDER, intent="n"))
            await asyncio.to_thread(arrived.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    store = MemoryIntents()
    with serving(hangs) as server:
        asyncio.run(cancelled(server, store))
        assert len(server.requests) == 1
    assert [intent.name for intent in store.unanswered()] == ["n"]


def test_a_hundred_that_wait_at_once_keep_nobody_waiting() -> None:
    """A pause in a thread of the loop's few let them wait one after another, past every deadline."""
    seen: set[bytes] = set()

    def first_under_way(exchange: Exchange) -> None:
        raw = exchange.read_request()
        again = raw in seen
        seen.add(raw)
        status = "201 Created" if again else "409 Conflict"
        body = b'{"id": "p1"}' if again else b'{"code": "in-progress"}'
        exchange.answer(body, status=status, headers="Retry-After: 1\r\nConnection: close\r\n")

    async def pay_all(server: FaultServer) -> list[Answer]:
        async with httpx2.AsyncClient() as http:
            client = AsyncClient(server.url, store=MemoryIntents(), http=http, deadline=10)
            calls = [client.post("/", json=ORDER, intent=f"n{number}") for number in range(100)]
            async with asyncio.timeout(10):
                return await asyncio.gather(*calls)

    with serving(first_under_way) as server:
        assert [answer.status for answer in asyncio.run(pay_all(server))] == [201] * 100


def test_r23_nothing_is_sent_under_a_key_that_the_server_may_have_forgotten() -> None:
    """It would be a new operation: what was begun a month ago and never answered needs a person."""
    store = MemoryIntents()
    month_later = FakeTime(wall=time.time() + 30 * 86_400)
    with serving(Script(lost, lost, lost, lost, DONE)) as server:
        client = Client(server.url, store=store, policy=POLICY, clock=FakeTime().clock)
        with pytest.raises(StillOpen):
            client.post("/", json=ORDER, intent="n", deadline=5)
        late = Client(server.url, store=store, policy=POLICY, clock=month_later.clock)
        sent = len(server.requests)
        with pytest.raises(StillOpen) as caught:
            late.post("/", json=ORDER, intent="n")
        assert (caught.value.code, len(server.requests)) == ("too-old", sent)
        patient = Client(
            server.url, store=store, policy=POLICY, clock=month_later.clock, key_memory=40 * 86_400
        )
        assert patient.post("/", json=ORDER, intent="n").status == 201
