"""When to try again, and how long to wait first: attempts, full jitter, the retry budget."""

import math
from dataclasses import dataclass
from threading import Lock

from idempotency.clock import SYSTEM, Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how long and with which pauses one call is tried.

    All durations are in seconds.

    Raises:
        ValueError: a number that cannot work; the message names it.
    """

    attempts: int = 3
    """Attempts at most, the first included."""
    base: float = 0.1
    """The first pause is drawn from [0, base]; each further range doubles."""
    cap: float = 5.0
    """No pause of our own is longer; the other side's `Retry-After` may be."""
    attempt_timeout: float = 3.0
    """For one attempt, from connecting to the last byte of the answer."""
    series: float = 12.0
    """For all attempts and pauses together."""
    reserve: float = 0.1
    """Left of the caller's deadline for recording the outcome and answering."""
    useful: float = 0.01
    """An attempt that would get less than this is not begun."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts counts the first one: at least 1, not {self.attempts}")
        for name in ("base", "cap", "attempt_timeout", "series", "reserve", "useful"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{name} must be a finite number of seconds, not {value!r}")
        if self.useful <= 0 or self.attempt_timeout < self.useful:
            raise ValueError("attempt_timeout must not be shorter than useful, and both above 0")
        if self.cap < self.base:
            raise ValueError(f"cap ({self.cap}) must not be shorter than base ({self.base})")
        if self.series < self.attempt_timeout:
            raise ValueError("series must leave time for one whole attempt (attempt_timeout)")

    def pause(self, retries: int, *, word: float | None = None, clock: Clock = SYSTEM) -> float:
        """Return the seconds to wait before the next attempt, after so many retries (from 0).

        Full jitter, random(0, min(cap, base * 2**retries)), spreads callers that failed together.
        The other side's `word` in seconds wins and is never shortened; a word of 0 ("at any time")
        leaves the pause to us.
        """
        if word:
            return word
        return clock.uniform(0.0, min(self.cap, self.base * 2.0 ** min(retries, 64)))

    @property
    def worst_case(self) -> float:
        """Seconds that a call can take without a `Retry-After`: what a configuration check needs.

        Compare it with the caller's budget: it must be shorter by the reserve.
        """
        pauses = sum(min(self.cap, self.base * 2.0**n) for n in range(min(self.attempts, 65) - 1))
        return min(self.series, self.attempts * self.attempt_timeout + pauses) + self.reserve


class RetryBudget:
    """A token bucket per dependency that bounds retries when everything fails, per process.

    A retry costs one token, and each call earns `ratio` of one: under a general failure the load on
    the dependency is at most 1 + `ratio` times the calls, after the first `burst` retries.
    """

    def __init__(self, *, ratio: float = 0.2, burst: float = 10.0) -> None:
        if not 0 <= ratio <= 1:
            raise ValueError(f"ratio must be between 0 and 1, not {ratio!r}")
        if not (math.isfinite(burst) and burst >= 1):
            raise ValueError(f"burst must allow one retry at least, not {burst!r}")
        self._ratio, self._burst = ratio, burst
        self._tokens = burst
        self._lock = Lock()

    def earn(self) -> None:
        """Count a call begun."""
        with self._lock:
            self._tokens = min(self._burst, self._tokens + self._ratio)

    def spend(self) -> bool:
        """Take the token for one retry; return whether there was one."""
        with self._lock:
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


def jittered(seconds: float, *, spread: float = 0.5, clock: Clock = SYSTEM) -> int:
    """Return a `Retry-After` to send: whole seconds, at least 1, never less than asked.

    Up to `spread` is added, so that callers who were refused together do not come back together.
    """
    return max(1, math.ceil(clock.uniform(seconds, seconds * (1 + spread))))
