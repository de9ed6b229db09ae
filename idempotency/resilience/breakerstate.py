"""The circuit breaker's values, and what both of its state machines have to do."""

import enum
import math
from dataclasses import dataclass
from typing import Protocol

from idempotency.resilience.table import Vote


class BreakerState(enum.StrEnum):
    """Whether calls are let through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    FORCED_OPEN = "forced_open"
    FORCED_CLOSED = "forced_closed"


class Force(enum.StrEnum):
    """What staff may do to a breaker."""

    OPEN = "open"
    CLOSED = "closed"
    CLEAR = "clear"
    """End a forced state, forget the calls seen, and start closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """When a breaker opens, and how it closes again. Durations are in seconds.

    Raises:
        ValueError: a number that cannot work; the message names it.
    """

    window: float = 30.0
    """Calls this recent count, to a tenth of the window."""
    min_calls: int = 10
    """With fewer calls in the window it does not open."""
    ratio: float = 0.5
    """It opens when this share of the calls failed."""
    open_seconds: float = 10.0
    probes: int = 2
    """Calls let through at a time while half open."""
    successes: int = 2
    """Probes that must succeed before it closes."""
    lease: float = 30.0
    """A probe that is not heard of for so long frees its place; longer than any attempt."""

    def __post_init__(self) -> None:
        for name in ("window", "open_seconds", "lease"):
            value = getattr(self, name)
            if not math.isfinite(value) or value <= 0:
                raise ValueError(f"{name} must be a positive number of seconds, not {value!r}")
        for name in ("min_calls", "probes", "successes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, not {self.ratio!r}")


@dataclass(frozen=True, slots=True)
class Change:
    """A state, and the one before it; equal where nothing changed."""

    before: BreakerState
    after: BreakerState
    cause: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to one call that wants to begin."""

    allowed: bool
    generation: int
    """Of the state: a vote from an earlier one does not count."""
    retry_after: float
    """Seconds after which asking again makes sense; 0 where allowed."""
    change: Change


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A breaker as staff and metrics see it."""

    state: BreakerState
    calls: int
    """In the window, while closed."""
    failures: int
    probes: int
    """Under way."""
    open_for: float
    """Seconds until probes are let through."""
    actor: str
    """Who forced it, or ""."""
    reason: str
    shared: bool
    """Whether all processes see this state; False for this process's own."""


class Machine(Protocol):
    """The state machine; one lives in the shared store, its twin in this process."""

    def acquire(self, token: str) -> Decision:
        """Decide whether a call may begin; in half-open the token leases a probe's place."""

    def record(self, token: str, generation: int, vote: Vote) -> Change:
        """Count how a call ended, and free its probe's place."""

    def force(self, force: Force, *, actor: str, reason: str) -> Change:
        """Do what staff decided."""

    def snapshot(self) -> Snapshot:
        """Return the state without changing it."""
