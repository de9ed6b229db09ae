"""A bounded number of concurrent calls per dependency: a slow one cannot take every thread."""

from threading import BoundedSemaphore


class Bulkhead:
    """So many calls at once, per process; no queue: one more is refused at once.

    A limit below the size of the thread pool that makes the calls leaves threads for other work.
    """

    def __init__(self, *, name: str, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"{name}: limit must allow one call at least, not {limit}")
        self.name, self.limit = name, limit
        self._free = BoundedSemaphore(limit)

    def enter(self) -> bool:
        """Take a place; return whether there was one. Who got one calls `leave`."""
        return self._free.acquire(blocking=False)

    def leave(self) -> None:
        """Give the place back."""
        self._free.release()

    @property
    def full(self) -> bool:
        """Whether a call would be refused at this moment."""
        if not self.enter():
            return True
        self.leave()
        return False
