"""The circuit breaker's state machine in this process: for one process, or while the store is lost.

Decides as the script in `breakershared` does; one suite of tests runs over both.
"""

from threading import Lock

from idempotency.clock import SYSTEM, Clock
from idempotency.resilience.breakerstate import (
    BreakerSettings,
    BreakerState,
    Change,
    Decision,
    Force,
    Snapshot,
)
from idempotency.resilience.table import Vote

BUCKETS = 10
"""Parts of the window that age together."""

_CLOSED, _OPEN, _HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN


class LocalMachine:
    """The state of one breaker, guarded by a lock that is never held during a call."""

    def __init__(self, settings: BreakerSettings, clock: Clock = SYSTEM) -> None:
        self._settings, self._clock = settings, clock
        self._lock = Lock()
        self._state = _CLOSED
        self._generation = 0
        self._open_until = 0.0
        self._succeeded = 0
        self._probes: dict[str, float] = {}
        self._buckets: dict[int, tuple[int, int]] = {}
        self._forced: BreakerState | None = None
        self._actor = self._reason = ""

    def acquire(self, token: str) -> Decision:
        """Decide whether a call may begin; in half-open the token leases a probe's place."""
        with self._lock:
            now, before = self._clock.now(), self._shown()
            if self._forced is not None:
                refused = self._forced is BreakerState.FORCED_OPEN
                retry_after = self._settings.open_seconds if refused else 0.0
                return Decision(not refused, self._generation, retry_after, self._same())
            if self._state is _OPEN:
                left = self._open_until - now
                if left > 0:
                    return Decision(False, self._generation, left, self._same())
                self._move(_HALF_OPEN)
            change = Change(before, self._state, "timer")
            if self._state is _HALF_OPEN and not self._lease_probe(token, now):
                retry_after = min(self._settings.open_seconds, 1.0)
                return Decision(False, self._generation, retry_after, change)
            return Decision(True, self._generation, 0.0, change)

    def _lease_probe(self, token: str, now: float) -> bool:
        self._probes = {held: until for held, until in self._probes.items() if until > now}
        if len(self._probes) >= self._settings.probes:
            return False
        self._probes[token] = now + self._settings.lease
        return True

    def record(self, token: str, generation: int, vote: Vote) -> Change:
        """Count how a call ended, and free its probe's place."""
        with self._lock:
            until = self._probes.pop(token, None)
            if self._forced is not None or generation != self._generation or vote is Vote.NONE:
                return self._same()
            if self._state is _HALF_OPEN:
                if until is None or until <= self._clock.now():
                    return self._same()
                return self._count_probe(vote)
            return self._count(vote)

    def _count_probe(self, vote: Vote) -> Change:
        if vote is Vote.FAILURE:
            return self._trip("probe-failed")
        self._succeeded += 1
        if self._succeeded < self._settings.successes:
            return self._same()
        self._move(_CLOSED)
        return Change(_HALF_OPEN, _CLOSED, "probes-succeeded")

    def _count(self, vote: Vote) -> Change:
        if self._state is not _CLOSED:
            return self._same()
        bucket = self._bucket()
        calls, failures = self._buckets.get(bucket, (0, 0))
        self._buckets[bucket] = (calls + 1, failures + (vote is Vote.FAILURE))
        calls, failures = self._seen()
        if calls >= self._settings.min_calls and failures / calls >= self._settings.ratio:
            return self._trip("failures")
        return self._same()

    def _bucket(self) -> int:
        return int(self._clock.now() / (self._settings.window / BUCKETS))

    def _seen(self) -> tuple[int, int]:
        oldest = self._bucket() - BUCKETS
        self._buckets = {at: seen for at, seen in self._buckets.items() if at > oldest}
        seen = self._buckets.values()
        return sum(calls for calls, _ in seen), sum(failures for _, failures in seen)

    def _trip(self, cause: str) -> Change:
        before = self._state
        self._move(_OPEN)
        self._open_until = self._clock.now() + self._settings.open_seconds
        return Change(before, _OPEN, cause)

    def _move(self, state: BreakerState) -> None:
        self._state = state
        self._generation += 1
        self._succeeded = 0
        self._probes.clear()
        self._buckets.clear()

    def force(self, force: Force, *, actor: str, reason: str) -> Change:
        """Do what staff decided."""
        with self._lock:
            before = self._shown()
            self._move(_CLOSED)
            self._forced = {
                Force.OPEN: BreakerState.FORCED_OPEN,
                Force.CLOSED: BreakerState.FORCED_CLOSED,
                Force.CLEAR: None,
            }[force]
            self._actor, self._reason = actor, reason
            return Change(before, self._shown(), "staff")

    def snapshot(self) -> Snapshot:
        """Return the state without changing it."""
        with self._lock:
            now = self._clock.now()
            calls, failures = self._seen()
            forced = self._forced is not None
            return Snapshot(
                state=self._shown(),
                calls=calls,
                failures=failures,
                probes=sum(until > now for until in self._probes.values()),
                open_for=max(0.0, self._open_until - now) if self._state is _OPEN else 0.0,
                actor=self._actor if forced else "",
                reason=self._reason if forced else "",
                shared=False,
            )

    def _shown(self) -> BreakerState:
        return self._forced or self._state

    def _same(self) -> Change:
        return Change(self._shown(), self._shown(), "")
