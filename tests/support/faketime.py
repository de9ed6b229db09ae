"""A clock that a test moves by hand: waiting takes no time, it passes it."""

import random
import threading

from idempotency.clock import Clock


class FakeTime:
    """Time as a number. `clock` is what code under test is given."""

    def __init__(self, *, now: float = 1_000.0, wall: float = 1_700_000_000.0) -> None:
        self.now, self.wall = now, wall
        self.waits: list[float] = []
        self.clock = Clock(
            now=lambda: self.now,
            wall=lambda: self.wall,
            wait=self._wait,
            sleep=self._sleep,
            uniform=random.Random(1).uniform,
        )

    def pass_(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.now += seconds
        self.wall += seconds

    def _wait(self, cancelled: threading.Event | None, seconds: float) -> bool:
        if cancelled is not None and cancelled.is_set():
            return True
        self.waits.append(seconds)
        self.pass_(max(0.0, seconds))
        return False

    async def _sleep(self, seconds: float) -> None:
        self._wait(None, seconds)
