"""R30: the ladder of a non-critical source, in parallel, each with a budget of its own."""

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from idempotency.resilience import (
    SOURCE_POLICY,
    Attempt,
    CircuitBreaker,
    Deadline,
    Guard,
    LastGood,
    Part,
    RetryPolicy,
    Rung,
    Source,
    current_deadline,
    deadline_scope,
    degrade,
)
from idempotency.telemetry import SourceDegraded, subscribe
from tests.support.faketime import FakeTime

ROOMY = RetryPolicy(attempts=1, attempt_timeout=5, series=5, reserve=0.02)
"""Where time is not the question, so that a busy machine does not answer it."""


def source_of(name: str, fetch: Callable[[Attempt], Any], **changed: Any) -> Source:
    guard = Guard(name=name, effect=False, policy=ROOMY)
    given: dict[str, Any] = {"name": name, "guard": guard, "fetch": fetch, "budget": 5.0}
    return Source(**(given | changed))


def fails(attempt: Attempt) -> Any:
    raise ConnectionRefusedError(111, "no")


@pytest.fixture
def rungs() -> Iterator[list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []
    end = subscribe(SourceDegraded, lambda event: heard.append((event.source, event.rung)))
    yield heard
    end()


def test_r30_where_all_is_live_the_answer_says_nothing(rungs: list[tuple[str, str]]) -> None:
    answer = degrade(source_of("rates", lambda a: 1), source_of("offers", lambda a: 2))
    assert answer.values == {"rates": 1, "offers": 2}
    assert not answer.partial
    assert answer.headers() == {}
    assert rungs == []


def test_r30_the_ladder_goes_from_live_to_stale_to_default_to_skipped(
    rungs: list[tuple[str, str]],
) -> None:
    clock = FakeTime()
    kept = LastGood(keep=600, clock=clock.clock)
    degrade(source_of("rates", lambda a: "live", last_good=kept))
    clock.pass_(599)
    answer = degrade(
        source_of("rates", fails, last_good=kept, default="default"),
        source_of("offers", fails, last_good=kept, default=[]),
        source_of("news", fails),
        source_of("weather", lambda a: "sun"),
    )
    assert answer.parts == {
        "rates": Part(Rung.STALE, "live", age=599.0),
        "offers": Part(Rung.DEFAULT, []),
        "news": Part(Rung.SKIPPED),
        "weather": Part(Rung.LIVE, "sun"),
    }
    assert answer.partial
    assert answer.values == {"rates": "live", "offers": [], "weather": "sun"}
    assert answer.headers() == {
        "X-Degraded": "rates=stale, offers=default, news=skipped",
        "Cache-Control": "no-store",
    }
    assert rungs == [("rates", "stale"), ("offers", "default"), ("news", "skipped")]
    clock.pass_(2)
    again = degrade(source_of("rates", fails, last_good=kept, default=None))
    assert again.parts["rates"] == Part(Rung.DEFAULT, None)


def test_r30_values_are_kept_per_key_and_bounded() -> None:
    kept = LastGood(size=2)
    for currency in ("EUR", "USD", "GBP"):
        degrade(source_of("rates", lambda attempt: "live", last_good=kept, key=currency))
    parts = [
        degrade(source_of("rates", fails, last_good=kept, key=currency)).parts["rates"].rung
        for currency in ("EUR", "USD", "GBP")
    ]
    assert parts == [Rung.SKIPPED, Rung.STALE, Rung.STALE]


def test_r30_sources_are_asked_in_parallel_and_none_is_waited_for_beyond_its_budget() -> None:
    release = threading.Event()
    asked = threading.Barrier(2, timeout=5)

    def meets(attempt: Attempt) -> str:
        asked.wait()
        return "met"

    def hangs(attempt: Attempt) -> None:
        release.wait(10)

    begun = time.monotonic()
    answer = degrade(
        source_of("slow", hangs, budget=0.150),
        source_of("one", meets),
        source_of("two", meets),
        source_of("broken", fails),
    )
    seconds = time.monotonic() - begun
    release.set()
    assert {name: part.rung for name, part in answer.parts.items()} == {
        "slow": Rung.SKIPPED,
        "one": Rung.LIVE,
        "two": Rung.LIVE,
        "broken": Rung.SKIPPED,
    }
    # 0.15 s, and what a busy machine adds; the hanging source takes 10 s.
    assert seconds < 5.0


def test_r30_context_reaches_the_threads_with_a_budget_of_its_own() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    tenant.set("merchant-a")
    clock = FakeTime().clock
    guard = Guard(name="a", effect=False, policy=SOURCE_POLICY, clock=clock)
    seen: queue.Queue[tuple[str, float, float]] = queue.Queue()

    def look(attempt: Attempt) -> None:
        deadline = current_deadline()
        assert deadline is not None
        seen.put((tenant.get(), deadline.left(), attempt.timeout))

    with deadline_scope(Deadline.after(10, clock)):
        degrade(Source(name="a", guard=guard, fetch=look))
    # 150 ms, of which the call leaves 20.
    who, budget, timeout = seen.get(timeout=5)
    assert who == "merchant-a"
    assert (budget, timeout) == pytest.approx((0.150, 0.130))


def test_r30_r26_no_source_is_called_when_the_callers_own_time_is_over() -> None:
    called: list[int] = []
    with deadline_scope(Deadline.after(0.02)):
        answer = degrade(source_of("a", lambda a: called.append(1)))
    assert answer.parts["a"].rung is Rung.SKIPPED
    assert called == []


def test_r30_r26_no_source_is_waited_for_beyond_the_callers_own_time() -> None:
    release = threading.Event()
    begun = time.monotonic()
    with deadline_scope(Deadline.after(0.1)):
        answer = degrade(source_of("a", lambda attempt: release.wait(10), budget=8))
    seconds = time.monotonic() - begun
    release.set()
    assert answer.parts["a"].rung is Rung.SKIPPED
    assert seconds < 4


def test_r30_a_source_with_an_open_breaker_goes_down_its_ladder_without_a_call() -> None:
    breaker = CircuitBreaker(name="rates")
    guard = Guard(name="rates", effect=False, policy=ROOMY, breaker=breaker)
    for _ in range(10):
        degrade(source_of("rates", fails, guard=guard))
    called: list[int] = []
    degrade(source_of("rates", lambda a: called.append(1), guard=guard))
    assert called == []


def test_r30_what_changes_something_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="effect"):
        source_of("charge", fails, guard=Guard(name="gateway", policy=SOURCE_POLICY))


def test_r30_a_budget_that_is_all_reserve_is_refused() -> None:
    with pytest.raises(ValueError, match="reserve"):
        source_of("rates", fails, budget=0.02)
