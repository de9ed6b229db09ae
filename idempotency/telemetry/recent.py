"""What this process turned away in the last hour, for people: metrics count it in all processes, and for ever."""

import time
from collections import Counter, deque
from collections.abc import Callable
from threading import Lock

from idempotency.telemetry.bus import Event
from idempotency.telemetry.events import KeyMet, RequestRefused

SECONDS = 3_600.0
_SLICE = 60.0


class TurnedAway:
    """Requests refused before their claim, and keys reused, by operation and reason; forgotten by the minute."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._slices: deque[tuple[float, Counter[tuple[str, str]]]] = deque()

    def hear(self, event: Event) -> None:
        """Count the event, if it is one of those."""
        match event:
            case RequestRefused(operation=operation, reason=reason):
                self._count(operation, reason)
            case KeyMet(operation=operation, answer="reused"):
                self._count(operation, "key-reused")

    def counts(self) -> list[tuple[str, str, int]]:
        """Return operation, reason and how often, the most frequent first."""
        with self._lock:
            self._forget()
            total: Counter[tuple[str, str]] = Counter()
            for _, counted in self._slices:
                total.update(counted)
        return [(operation, reason, count) for (operation, reason), count in total.most_common()]

    def _count(self, operation: str, reason: str) -> None:
        with self._lock:
            self._forget()
            now = self._now()
            if not self._slices or now >= self._slices[-1][0] + _SLICE:
                self._slices.append((now, Counter()))
            self._slices[-1][1][operation, reason] += 1

    def _forget(self) -> None:
        while self._slices and self._slices[0][0] <= self._now() - SECONDS:
            self._slices.popleft()


turned_away = TurnedAway()
