"""Deadlines: one absolute budget enters at the edge; each layer takes less than what is left.

Kept on the suspend-proof clock, so that a process that was frozen finds its time spent. It crosses
between machines as a remaining time or as wall-clock milliseconds, never as this clock's number.
"""

import math
import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Self

from idempotency.clock import SYSTEM, Clock

_AMBIENT: ContextVar["Deadline | None"] = ContextVar("idempotency_deadline", default=None)
_MILLISECONDS = re.compile(r"[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which nobody waits for the answer.

    `at` is in seconds on `clock.now`.
    """

    at: float
    clock: Clock = SYSTEM

    @classmethod
    def after(cls, seconds: float, clock: Clock = SYSTEM) -> Self:
        """Return the deadline that many seconds from now."""
        if not math.isfinite(seconds):
            raise ValueError(f"a deadline needs a finite number of seconds, not {seconds}")
        return cls(clock.now() + seconds, clock)

    @classmethod
    def from_header(cls, value: str | None, *, budget: float, clock: Clock = SYSTEM) -> Self:
        """Return the deadline of an inbound request: the caller's word, capped by our own budget.

        `value` is the remaining time in whole milliseconds, 1-10 ASCII digits. Anything else, and
        an absent header, count as no word: a malformed header must not take the budget away.
        """
        if value is None or not _MILLISECONDS.fullmatch(value.strip(" \t")):
            return cls.after(budget, clock)
        return cls.after(min(budget, int(value) / 1000), clock)

    @classmethod
    def from_wall_ms(cls, value: int, *, budget: float, clock: Clock = SYSTEM) -> Self:
        """Return the deadline that another process wrote with `to_wall_ms`, capped by our budget.

        The cap also bounds what a difference between the two wall clocks can do.
        """
        return cls.after(min(budget, value / 1000 - clock.wall()), clock)

    def to_wall_ms(self) -> int:
        """Return the deadline in milliseconds since the epoch, to be sent to another process."""
        return round((self.clock.wall() + self.left()) * 1000)

    def left(self) -> float:
        """Return the seconds left; negative once it has passed."""
        return self.at - self.clock.now()

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.left() <= 0

    def child(self, *, reserve: float = 0.0, at_most: float | None = None) -> "Deadline":
        """Return a callee's deadline: earlier than this by the reserve, and at most so far away."""
        at = self.at - reserve
        if at_most is not None:
            at = min(at, self.clock.now() + at_most)
        return Deadline(at, self.clock)


def current_deadline() -> Deadline | None:
    """Return the deadline of the work that this context does, or None where nobody set one."""
    return _AMBIENT.get()


@contextmanager
def deadline_scope(deadline: Deadline | None) -> Generator[Deadline | None, None, None]:
    """Make it the context's deadline; an inner scope can bring it nearer, never put it off."""
    outer = _AMBIENT.get()
    if deadline is None or (outer is not None and outer.at < deadline.at):
        deadline = outer
    token = _AMBIENT.set(deadline)
    try:
        yield deadline
    finally:
        _AMBIENT.reset(token)
