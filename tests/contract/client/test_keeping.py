"""What a client makes impossible: another key, another server, another layer that retries."""

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
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
    IntentsUnavailable,
    MemoryIntents,
    SqliteIntents,
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
        client = Client(server.url, store=store, policy=POLICY, clock=_now().clock)
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


def test_r23_nothing_is_sent_by_a_clock_that_was_set_back() -> None:
    """By such a clock a key of last year is of tomorrow, and surely known."""
    store = MemoryIntents()
    with serving(Script(lost, lost, lost, lost, DONE)) as server:
        now = FakeTime(wall=time.time())
        client = Client(server.url, store=store, policy=POLICY, clock=now.clock)
        with pytest.raises(StillOpen):
            client.post("/", json=ORDER, intent="n")
        sent = len(server.requests)
        now.wall -= 400 * 86_400
        with pytest.raises(StillOpen) as caught:
            client.post("/", json=ORDER, intent="n")
        assert (caught.value.code, len(server.requests)) == ("too-old", sent)
        now.wall = time.time() - 3600
        assert client.post("/", json=ORDER, intent="n").status == 201


def test_a_call_that_sent_nothing_does_not_speak_for_another_with_its_intent(
    tmp_path: Path,
) -> None:
    """Two processes have one intent; the one finds the server away, the other's answer is lost."""
    path = tmp_path / "intents.db"
    with serving(Script(DONE)) as gone:
        pass

    class Slow(SqliteIntents):
        """Lets the other call come between the two steps of this one."""

        def begin(self, **asked: Any) -> Any:
            found = super().begin(**asked)
            with pytest.raises(StillOpen):
                second.post("/", json=ORDER, intent="n")
            return found

    with serving(lost) as server:
        second = Client(
            server.url, store=SqliteIntents(path), policy=POLICY, clock=_now().clock, deadline=5
        )
        first = Client(gone.url, store=Slow(path), policy=POLICY, clock=_now().clock)
        with pytest.raises(StillOpen, match="another call"):
            first.post("/", json=ORDER, intent="n")
    assert [intent.name for intent in SqliteIntents(path).unanswered()] == ["n"]


def test_what_is_resumed_while_it_is_under_way_is_not_loosened(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    with serving(Script(DONE)) as gone:
        pass

    class Slow(SqliteIntents):
        def begin(self, **asked: Any) -> Any:
            found = super().begin(**asked)
            assert list(second.resume(deadline=5)) == ["n"]
            return found

    with serving(lost) as server:
        second = Client(server.url, store=SqliteIntents(path), policy=POLICY, clock=_now().clock)
        first = Client(gone.url, store=Slow(path), policy=POLICY, clock=_now().clock)
        with pytest.raises(StillOpen):
            first.post("/", json=ORDER, intent="n")
    assert [intent.name for intent in SqliteIntents(path).unanswered()] == ["n"]


def test_an_answer_that_cannot_be_kept_is_told_all_the_same(make: Make) -> None:
    """The disk is full: what happened is known, and another call asks the server for it again."""

    class Full(MemoryIntents):
        def settle(self, **_: Any) -> None:
            raise IntentsUnavailable("disk full")

    with serving(Script(DONE)) as server:
        caller = make(server)
        caller.client._terms = replace(caller.client._terms, store=Full())
        assert (pay(caller).status, pay(caller).status) == (201, 201)
    assert len(set(keys(server))) == 1
    assert len(keys(server)) == 2


def _now() -> FakeTime:
    return FakeTime(wall=time.time())
