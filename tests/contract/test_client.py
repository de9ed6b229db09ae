"""The client over each HTTP library, on real sockets, against a server that answers as a script says.

Time is a number here: waiting takes none, and its length is looked at.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    IntentChanged,
    MemoryIntents,
    NotRenewable,
    Operation,
    StillOpen,
)
from idempotency.exceptions import CallFailed, CallRejected, Misuse
from idempotency.resilience import RetryPolicy
from tests.support.faketime import FakeTime
from tests.support.faultserver import Exchange, FaultServer, serving
from tests.support.scripted import Line, Script, keys, lost, problem

ORDER = {"order_id": "881", "amount": 5}
POLICY = RetryPolicy(
    attempts=4, base=0.2, cap=5.0, attempt_timeout=5.0, series=60.0, reserve=0.0
)  # fmt: skip

IN_PROGRESS = problem(409, "in-progress", after=2, retryable=True, operation_ref="ref-1")
UNKNOWN_FIRST = problem(504, "outcome-unknown", after=5, retryable=True, operation_ref="ref-1")
UNKNOWN = problem(409, "outcome-unknown", after=5, retryable=True, operation_ref="ref-1")
BUSY = problem(503, "overloaded", after=3, retryable=True)
DONE: Line = (201, {"id": "p1"})


@dataclass
class Caller:
    """One of the clients, called alike."""

    client: Any
    time: FakeTime
    run: Callable[[Any], Any]
    store: MemoryIntents
    again: Callable[[], "Caller"]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            return self.run(made) if inspect.isawaitable(made) else made

        return call


Make = Callable[[FaultServer], Caller]


@pytest.fixture(params=["requests", "httpx2", "default", "async"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    with asyncio.Runner() as runner, requests.Session() as session, httpx2.Client() as client:
        session.trust_env = False
        time, store = FakeTime(), MemoryIntents()
        asynchronous = httpx2.AsyncClient()
        https = {"requests": session, "httpx2": client, "default": None, "async": asynchronous}
        http = https[request.param]

        async def run(made: Any) -> Any:
            return await made

        def caller(server: FaultServer) -> Caller:
            kind: Any = AsyncClient if request.param == "async" else Client
            made = kind(server.url, store=store, http=http, policy=POLICY, clock=time.clock)
            return Caller(made, time, lambda it: runner.run(run(it)), store, lambda: caller(server))

        yield caller
        runner.run(asynchronous.aclose())


def pay(caller: Caller, **more: Any) -> Answer:
    answer: Answer = caller.post("/api/payments/", json=ORDER, intent="charge 881", **more)
    return answer


def test_what_was_not_executed_is_tried_again_under_one_key(make: Make) -> None:
    """R25: the server's word is never shortened."""
    with serving(Script(BUSY, BUSY, DONE)) as server:
        caller = make(server)
        answer = pay(caller)
    assert (answer.status, answer.json()) == (201, {"id": "p1"})
    assert len(keys(server)) == 3
    assert len(set(keys(server))) == 1
    assert caller.time.waits == [3.0, 3.0]


@pytest.mark.parametrize("line", [lost, (500, {}), (502, {}), (503, {"no": "code"})])
def test_what_may_have_been_executed_is_tried_again_under_the_same_key(
    make: Make, line: Line
) -> None:
    with serving(Script(line, line, DONE)) as server:
        answer = pay(make(server))
    assert answer.status == 201
    assert len(keys(server)) == 3
    assert len(set(keys(server))) == 1


def test_what_is_in_progress_or_unknown_is_waited_for(make: Make) -> None:
    """Far more often than an attempt may be repeated: waiting is no failure."""
    lines = [UNKNOWN_FIRST, *[UNKNOWN] * 5, IN_PROGRESS, DONE]
    with serving(Script(*lines)) as server:
        caller = make(server)
        assert pay(caller).status == 201
    assert len(keys(server)) == len(lines)
    assert len(set(keys(server))) == 1
    assert caller.time.waits == [5.0] * 6 + [2.0]


def test_past_the_deadline_it_is_still_open_and_says_what_to_do(make: Make) -> None:
    with serving(Script(UNKNOWN)) as server:
        caller = make(server)
        with pytest.raises(StillOpen) as caught:
            pay(caller, deadline=12)
        assert sum(caller.time.waits) <= 12
        open_ = caught.value
        assert (open_.intent, open_.code, open_.operation_ref, open_.retry_after) == (
            "charge 881",
            "outcome-unknown",
            "ref-1",
            5.0,
        )
        with pytest.raises(StillOpen):
            pay(caller.again(), deadline=12)
    assert len(set(keys(server))) == 1


def test_what_certainly_did_not_happen_is_told_so(make: Make) -> None:
    """With the server's own reason; and the request may then be another."""
    with serving(Script(BUSY)) as server:
        caller = make(server)
        with pytest.raises(CallFailed) as caught:
            pay(caller)
        assert (caught.value.code, caught.value.retry_after) == ("overloaded", 3.0)
        with pytest.raises(CallFailed):
            caller.post("/api/payments/", json={"another": 1}, intent="charge 881")
    assert len(set(keys(server))) == 1


def test_a_server_that_is_not_there_got_nothing(make: Make) -> None:
    with serving(Script(DONE)) as server:
        pass
    caller = make(server)
    with pytest.raises(CallFailed):
        pay(caller)
    assert caller.store.unanswered() == []


def test_after_a_lost_answer_nothing_is_certain_any_more(make: Make) -> None:
    """A refusal in a later call does not undo what an earlier one may have done."""
    with serving(Script(lost)) as server:
        caller = make(server)
        with pytest.raises(StillOpen):
            pay(caller)
    with pytest.raises(StillOpen):
        pay(caller.again())
    with pytest.raises(IntentChanged):
        caller.post("/api/payments/", json={"another": 1}, intent="charge 881")


def test_a_final_answer_is_asked_for_once(make: Make) -> None:
    with serving(Script(DONE)) as server:
        caller = make(server)
        first, second = pay(caller), pay(caller.again())
    assert (first.remembered, second.remembered) == (False, True)
    assert first.json() == second.json()
    assert len(server.requests) == 1


def test_a_verdict_is_an_answer_and_a_new_key_only_after_it(make: Make) -> None:
    declined = problem(402, "payment-declined", retryable=False, safe_new_key=True)
    with serving(Script(declined, DONE)) as server:
        caller = make(server)
        assert (pay(caller).status, pay(caller).code) == (402, "payment-declined")
        assert len(server.requests) == 1
        caller.renew("charge 881")
        assert pay(caller).status == 201
        with pytest.raises(NotRenewable):
            caller.renew("charge 881")
    first, second = keys(server)
    assert first != second


def test_a_refused_request_can_be_corrected_under_its_key(make: Make) -> None:
    with serving(Script(problem(400, "invalid"), DONE)) as server:
        caller = make(server)
        assert pay(caller).status == 400
        answer = caller.post("/api/payments/", json={"amount": 6}, intent="charge 881")
    assert answer.status == 201
    assert len(set(keys(server))) == 1


def test_a_refusal_after_a_lost_answer_frees_nothing(make: Make) -> None:
    """The token ran out between two tries: the first may have been done."""
    with serving(Script(lost, problem(401, "not-authenticated"))) as server:
        caller = make(server)
        assert pay(caller).status == 401
        with pytest.raises(IntentChanged):
            caller.post("/api/payments/", json={"amount": 6}, intent="charge 881")
    assert [intent.name for intent in caller.store.unanswered()] == ["charge 881"]


def test_a_reused_key_is_neither_done_nor_denied(make: Make) -> None:
    with serving(Script(problem(422, "key-reused", safe_new_key=False))) as server:
        with pytest.raises(StillOpen) as caught:
            pay(make(server))
        assert caught.value.code == "key-reused"


def test_what_an_earlier_process_began_is_finished(make: Make) -> None:
    with serving(Script(lost, lost, lost, lost, DONE)) as server:
        caller = make(server)
        with pytest.raises(StillOpen):
            pay(caller)
        ends = caller.again().resume()
    assert ends["charge 881"].status == 201
    assert len(set(keys(server))) == 1
    assert caller.store.unanswered() == []


def test_deferred_work_is_followed_to_its_end(make: Make) -> None:
    at = {"operation": "payouts.create", "attempts": 1, "id": "op1"}
    promised: Line = (202, at | {"state": "in_progress", "done": False}, "Location: /op/1/\r\n")
    waits: Line = (200, at | {"state": "in_progress", "done": False}, "Retry-After: 7\r\n")
    done: Line = (200, at | {"state": "completed", "done": True, "result": {"id": "po_1"}})
    with serving(Script(promised, waits, BUSY, waits, done)) as server:
        caller = make(server)
        seen: list[Operation] = []
        operation = caller.follow(pay(caller), progress=seen.append)
    assert (operation.done, operation.result) == (True, {"id": "po_1"})
    assert [each.done for each in seen] == [False, False, True]
    assert caller.time.waits == [7.0, 3.0, 7.0]
    assert server.requests[1].startswith(b"GET /op/1/")
    assert len(keys(server)) == 1, "a look has no key"


def test_work_that_goes_on_past_the_deadline_is_still_open(make: Make) -> None:
    at = {"operation": "o", "attempts": 1, "id": "op1", "state": "in_progress", "done": False}
    with serving(Script((202, at, "Location: /op/1/\r\n"), (200, at, "Retry-After: 7\r\n"))) as it:
        caller = make(it)
        with pytest.raises(StillOpen):
            caller.follow(pay(caller), deadline=20)
    assert caller.time.waits == [7.0, 7.0]


def test_a_monitor_that_shows_nothing_says_why(make: Make) -> None:
    gone = problem(410, "result-expired", detail="It is forgotten.")
    with serving(Script((202, {}, "Location: /op/1/\r\n"), gone)) as server:
        caller = make(server)
        with pytest.raises(CallRejected) as caught:
            caller.follow(pay(caller))
    assert caught.value.code == "result-expired"


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
