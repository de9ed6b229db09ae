"""R27: the breaker over several processes on a real store, and without the store."""

import contextlib
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from idempotency.exceptions import CallFailed
from idempotency.resilience import (
    BreakerState,
    CircuitBreaker,
    Force,
    Guard,
    SharedStore,
    StoreUnavailable,
    Vote,
    journalled,
)
from idempotency.telemetry import BreakerChanged, Event, StoreFound, StoreLost, subscribe
from project.embedded.store import Store
from tests.integration.resilience.breaker_process import SETTINGS

PROCESSES, THREADS = 4, 20
REFUSALS = 20
SKEWS = (0.0, 3600.0, -3600.0, 86400.0)


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def breaker(shared: SharedStore, name: str) -> CircuitBreaker:
    return CircuitBreaker(name=name, store=shared, settings=SETTINGS)


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    events: list[Event] = []
    end = subscribe(Event, events.append)
    yield events
    end()


def trip(breaker: CircuitBreaker) -> None:
    for _ in range(SETTINGS.min_calls):
        breaker.record(breaker.acquire(), Vote.FAILURE)
    assert breaker.snapshot().state is BreakerState.OPEN


def until(condition: Any, *, within: float = 10.0) -> None:
    """Poll, since the store keeps its own time."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it never happened"
        threading.Event().wait(0.02)


@contextlib.contextmanager
def processes(server: Store, name: str) -> Iterator[list[subprocess.Popen[str]]]:
    module = "tests.integration.resilience.breaker_process"
    with contextlib.ExitStack() as stack:
        started = []
        for skew in SKEWS:
            process = subprocess.Popen(
                [sys.executable, "-m", module, server.url, name, str(THREADS), str(skew)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        for process in started:
            assert told(process) == "ready"
        yield started


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_r27_exactly_the_probes_pass_over_four_processes_of_twenty_threads(
    store_server: Store, breaker: CircuitBreaker, name: str
) -> None:
    """Their clocks differ by hours; the store's decides. Then all of them are killed."""
    with processes(store_server, name) as asking:
        trip(breaker)
        until(lambda: breaker.snapshot().open_for == 0)
        for process in asking:
            go(process)
        answers = [json.loads(told(process)) for process in asking]
        assert sum(answer["asked"] for answer in answers) == PROCESSES * THREADS
        assert sum(answer["allowed"] for answer in answers) == SETTINGS.probes
        # One transition, announced by the one process that made it.
        assert [change for a in answers for change in a["changes"]] == ["open>half_open"]
        assert not breaker.acquire().allowed
        for process in asking:
            process.kill()
    # The killed probes do not jam it: their leases end, and two others close it.
    until(lambda: breaker.wait() is None)
    for _ in range(SETTINGS.successes):
        permit = breaker.acquire()
        assert permit.allowed
        breaker.record(permit, Vote.SUCCESS)
    assert breaker.snapshot().state is BreakerState.CLOSED


def test_r27_what_one_process_sees_another_knows(
    store_server: Store, breaker: CircuitBreaker, name: str
) -> None:
    other = CircuitBreaker(
        name=name, store=SharedStore.connect(store_server.url, timeout=2.0), settings=SETTINGS
    )
    trip(breaker)
    assert not other.acquire().allowed
    other.force(Force.CLEAR, actor="ops", reason="repaired")
    assert breaker.acquire().allowed
    assert breaker.snapshot().shared


def test_r27_changes_are_announced_once_with_who_and_why(
    breaker: CircuitBreaker, heard: list[Event], name: str
) -> None:
    trip(breaker)
    breaker.force(Force.OPEN, actor="ops", reason="maintenance")
    changes = [event for event in heard if isinstance(event, BreakerChanged)]
    assert changes == [
        BreakerChanged(name, "closed", "open", "failures"),
        BreakerChanged(name, "open", "forced_open", "staff", "ops", "maintenance"),
    ]


def test_r27_h7_a_store_that_lost_its_data_means_closed(
    store_server: Store, breaker: CircuitBreaker
) -> None:
    old = breaker.acquire()
    trip(breaker)
    with redis.Redis.from_url(store_server.url) as client:
        client.flushall()
    assert breaker.acquire().allowed
    breaker.record(old, Vote.FAILURE)
    assert breaker.snapshot().state is BreakerState.CLOSED


# -- the store is lost --------------------------------------------------------------------------------


def test_r27_a_lost_store_neither_opens_nor_jams_it_and_is_reported_once(
    own_store: Store, name: str, heard: list[Event]
) -> None:
    store = SharedStore(SharedStore.connect(own_store.url)._client, name="breakers", rest=0.1)
    breaker = CircuitBreaker(name=name, store=store, settings=SETTINGS)
    begun = breaker.acquire()
    own_store.kill()
    # A call under way when the store goes ends quietly.
    breaker.record(begun, Vote.SUCCESS)
    for _ in range(50):
        permit = breaker.acquire()
        assert permit.allowed
        breaker.record(permit, Vote.SUCCESS)
    assert not breaker.snapshot().shared
    assert [type(e) for e in heard if isinstance(e, StoreLost | StoreFound)] == [StoreLost]

    # This process's own machine still protects the dependency, and recovers.
    for _ in range(60):
        permit = breaker.acquire()
        if permit.allowed:
            breaker.record(permit, Vote.FAILURE)
    assert breaker.snapshot().state is BreakerState.OPEN
    with pytest.raises(StoreUnavailable):
        breaker.force(Force.CLEAR, actor="ops", reason="")
    until(lambda: breaker.wait() is None)
    for _ in range(SETTINGS.successes):
        breaker.record(breaker.acquire(), Vote.SUCCESS)
    assert breaker.snapshot().state is BreakerState.CLOSED

    # The store comes back, and is used again.
    own_store.start()
    until(lambda: breaker.snapshot().shared)
    assert [type(e) for e in heard if isinstance(e, StoreLost | StoreFound)] == [
        StoreLost,
        StoreFound,
    ]


def test_r27_r26_a_store_that_hangs_costs_its_timeout_once_and_not_on_every_call(
    own_store: Store, name: str
) -> None:
    store = SharedStore.connect(own_store.url, timeout=0.1)
    breaker = CircuitBreaker(name=name, store=store, settings=SETTINGS)
    breaker.record(breaker.acquire(), Vote.SUCCESS)
    with redis.Redis.from_url(own_store.url) as client:
        client.execute_command("CLIENT", "PAUSE", "5000", "ALL")
    begun = time.monotonic()
    for _ in range(200):
        permit = breaker.acquire()
        assert permit.allowed
        breaker.record(permit, Vote.SUCCESS)
    # 400 timeouts would be 40 s.
    assert time.monotonic() - begun < 1.0


def test_r27_a_store_that_was_never_there(name: str, heard: list[Event]) -> None:
    store = SharedStore.connect("redis://127.0.0.1:1/0")
    breaker = CircuitBreaker(name=name, store=store, settings=SETTINGS)
    assert breaker.acquire().allowed
    assert [e.store for e in heard if isinstance(e, StoreLost)] == ["store"]


# -- what it costs ------------------------------------------------------------------------------------


def test_r27_a_refusal_by_an_open_breaker_costs_one_round_trip_and_no_call(
    own_store: Store, name: str
) -> None:
    """What that takes in time, `benchmarks/resilience.py` measures."""
    store = SharedStore.connect(own_store.url)
    breaker = CircuitBreaker(name=name, store=store, settings=SETTINGS)
    guard = Guard(name="gateway", keyed=True, breaker=breaker)
    breaker.force(Force.OPEN, actor="test", reason="cost")
    called: list[object] = []
    with redis.Redis.from_url(own_store.url) as client, journalled(lambda: None):
        before = client.info("stats")["total_reads_processed"]
        for _ in range(REFUSALS):
            with pytest.raises(CallFailed) as refused:
                guard.call(called.append)
            assert (refused.value.code, refused.value.sent) == ("circuit-open", False)
        after = client.info("stats")["total_reads_processed"]
    assert called == []
    # The second INFO is the one that is no refusal.
    assert after - before - 1 == REFUSALS
