"""R28: a dependency that hangs is asked by a bounded number of calls, and nothing else suffers."""

import resource
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from idempotency.exceptions import CallFailed, CallUnknown
from idempotency.resilience import (
    Attempt,
    Bulkhead,
    Guard,
    RetryPolicy,
    http_client,
    journalled,
)
from tests.support import faultserver as faults
from tests.support.faultserver import serving

LIMIT, RATE, SECONDS = 16, 200, 2.0


class InFlight:
    """Counts who is inside, and how many ever were at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1


def test_r28_200_requests_a_second_against_a_dependency_that_hangs() -> None:
    """In one run: the other endpoint's latency before and during, places, answers, memory."""
    policy = RetryPolicy(attempts=1, attempt_timeout=0.5, series=0.5)
    bulkhead = Bulkhead(name="hanging", limit=LIMIT)
    hanging = Guard(name="hanging", keyed=True, policy=policy, bulkhead=bulkhead)
    healthy = Guard(name="healthy", effect=False, policy=RetryPolicy(attempt_timeout=5))
    ended: list[str] = []
    refused: list[float] = []
    with (
        serving(faults.stall_before_answer) as slow,
        serving(faults.success) as fast,
        http_client(base_url=slow.url, connections=RATE) as slow_client,
        http_client(base_url=fast.url) as fast_client,
        ThreadPoolExecutor(64) as threads,
    ):
        under_way = InFlight()

        def send(attempt: Attempt) -> None:
            with under_way:
                slow_client.post("/")

        def call_hanging() -> None:
            begun = time.perf_counter()
            try:
                with journalled(lambda: None):
                    hanging.call(send)
            except CallFailed as error:
                ended.append(error.code)
                refused.append(time.perf_counter() - begun)
            except CallUnknown as error:
                ended.append(error.code)

        def latency() -> float:
            begun = time.perf_counter()
            healthy.call(lambda attempt: fast_client.post("/"))
            return time.perf_counter() - begun

        before = statistics.median(latency() for _ in range(100))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        during = []
        begun, asked = time.monotonic(), 0
        pace = threading.Event()
        while (passed := time.monotonic() - begun) < SECONDS:
            while asked < passed * RATE:
                threads.submit(call_hanging)
                asked += 1
            during.append(latency())
            pace.wait(0.005)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert asked >= RATE * SECONDS * 0.75
    assert under_way.most == LIMIT
    assert len(ended) == asked
    assert set(ended) == {"overloaded", "outcome-unknown"}
    # The time of one attempt (0.5 s) bounds how many got a place; everybody else was refused at once.
    assert ended.count("outcome-unknown") <= LIMIT * (SECONDS / 0.5 + 1)
    assert statistics.median(refused) < 0.25
    assert not bulkhead.full
    # Generous, since this machine's other work is in it too: a starved endpoint takes 0.5 s.
    assert statistics.median(during) < max(10 * before, 0.25)
    assert grown < 50_000, f"{grown} KiB"


@pytest.mark.parametrize("limit", [1, 5])
def test_r28_h8_nothing_is_held_during_the_calls_but_their_places(limit: int) -> None:
    guard = Guard(name="g", effect=False, bulkhead=Bulkhead(name="g", limit=limit))
    inside = threading.Barrier(limit, timeout=5)
    with ThreadPoolExecutor(limit) as threads:
        calls = [threads.submit(guard.call, lambda attempt: inside.wait()) for _ in range(limit)]
        assert sorted(call.result() for call in calls) == list(range(limit))
