"""Degradation: an answer that is poorer instead of none, and says so.

For sources that the answer can do without. Each is asked in parallel within a short budget of its
own; one that gives nothing goes down its ladder: live, stale, default, skipped. Money, rights and
integrity are never such a source.
"""

import enum
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Any

from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import CallError
from idempotency.resilience.attempt import Attempt
from idempotency.resilience.deadline import Deadline, current_deadline, deadline_scope
from idempotency.resilience.guard import Guard
from idempotency.resilience.retry import RetryPolicy
from idempotency.telemetry import SourceDegraded, emit

THREADS = 16
"""Sources that one process asks at a time; more wait, within their budgets."""


class Rung(enum.StrEnum):
    """Where on its ladder a source's value comes from."""

    LIVE = "live"
    STALE = "stale"
    DEFAULT = "default"
    SKIPPED = "skipped"


NO_DEFAULT: Any = object()
"""The source is left out of the answer instead."""

SOURCE_POLICY = RetryPolicy(attempts=1, attempt_timeout=0.130, series=0.130, reserve=0.020)
"""For a source's guard: one attempt, that leaves 20 ms of the source's 150 ms budget."""


class LastGood:
    """The last live values in this process, each kept for `keep` seconds; at most `size` of them."""

    def __init__(self, *, keep: float = 600.0, size: int = 1024, clock: Clock = SYSTEM) -> None:
        self._keep, self._size, self._clock = keep, size, clock
        self._lock = Lock()
        self._values: dict[str, tuple[float, Any]] = {}

    def put(self, key: str, value: Any) -> None:
        """Keep the value, and drop the oldest where there are too many."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = (self._clock.now(), value)
            if len(self._values) > self._size:
                del self._values[next(iter(self._values))]

    def get(self, key: str) -> tuple[float, Any] | None:
        """Return the value's age in seconds and the value, or None where it is absent or too old."""
        with self._lock:
            kept = self._values.get(key)
        if kept is None:
            return None
        age = self._clock.now() - kept[0]
        return (age, kept[1]) if age <= self._keep else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something the answer can do without.

    Its guard makes one attempt (`SOURCE_POLICY`) and should have a breaker and a bulkhead.

    Raises:
        ValueError: the guard's calls have an effect, or get no time within the budget.
    """

    name: str
    guard: Guard
    fetch: Callable[[Attempt], Any]
    """Makes one request within the attempt's timeout."""
    default: Any = NO_DEFAULT
    last_good: LastGood | None = None
    key: str = ""
    """Of the value among others of this source, e.g. a currency."""
    budget: float = 0.150
    """Seconds, whatever happens."""

    def __post_init__(self) -> None:
        terms = self.guard.terms
        if terms.effect:
            raise ValueError(f"{self.name}: a call with an effect cannot be left out of an answer")
        if terms.policy.reserve + terms.policy.useful >= self.budget:
            raise ValueError(f"{self.name}: the guard's reserve takes up the whole budget")


@dataclass(frozen=True, slots=True)
class Part:
    """What one source contributed."""

    rung: Rung
    value: Any = None
    age: float = 0.0
    """Seconds, of a stale value."""


@dataclass(frozen=True, slots=True)
class Degradable:
    """What all sources contributed, by name, in the order they were given."""

    parts: Mapping[str, Part] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether any part is not live."""
        return any(part.rung is not Rung.LIVE for part in self.parts.values())

    @property
    def values(self) -> dict[str, Any]:
        """The values that there are; a skipped source is left out."""
        return {
            name: part.value for name, part in self.parts.items() if part.rung is not Rung.SKIPPED
        }

    def headers(self) -> dict[str, str]:
        """Return the response headers that say so; none where everything is live."""
        poorer = [f"{n}={p.rung}" for n, p in self.parts.items() if p.rung is not Rung.LIVE]
        return {"X-Degraded": ", ".join(poorer), "Cache-Control": "no-store"} if poorer else {}


def degrade(*sources: Source, executor: Executor | None = None) -> Degradable:
    """Ask all sources in parallel, and return what each contributed; never raises for one of them.

    Context variables reach the threads. A source that is not back within its budget, or within what
    is left of the caller's deadline, is not waited for; it cancels no sibling.
    """
    pool = executor or _pool()
    asked = [(source, *_ask(source, pool)) for source in sources]
    return Degradable({source.name: _part(source, live, until) for source, live, until in asked})


def _ask(source: Source, pool: Executor) -> tuple[Future[Any], Deadline]:
    clock = source.guard.terms.clock
    ambient = current_deadline()
    until = Deadline.after(source.budget, clock)
    if ambient is not None:
        until = until.child(at_most=ambient.left())

    def fetch() -> Any:
        with deadline_scope(until):
            return source.guard.call(source.fetch)

    return pool.submit(copy_context().run, fetch), until


def _part(source: Source, live: Future[Any], until: Deadline) -> Part:
    try:
        value = live.result(max(0.0, until.left()))
    except (CallError, TimeoutError):
        live.cancel()
        return _lower_rung(source)
    if source.last_good is not None:
        source.last_good.put(f"{source.name}:{source.key}", value)
    return Part(Rung.LIVE, value)


def _lower_rung(source: Source) -> Part:
    kept = source.last_good and source.last_good.get(f"{source.name}:{source.key}")
    if kept:
        part = Part(Rung.STALE, kept[1], age=kept[0])
    elif source.default is not NO_DEFAULT:
        part = Part(Rung.DEFAULT, source.default)
    else:
        part = Part(Rung.SKIPPED)
    emit(SourceDegraded(source=source.name, rung=part.rung))
    return part


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="degrade")
