"""Time as the rest of the package sees it: injected, and suspend-proof where a deadline is kept.

Leases, expiry and due dates never use this clock: they use the database's (`clock_timestamp()`).
"""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def boottime() -> float:
    """Return seconds since boot, counting the time for which the machine was suspended.

    A deadline kept by a clock that stops during suspension would let a woken process send late.
    Where the platform has no CLOCK_BOOTTIME, its monotonic clock is the best there is.
    """
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


def wait(cancelled: threading.Event | None, seconds: float) -> bool:
    """Wait for the seconds to pass or the event to be set; return whether the event ended the wait."""
    return (cancelled or threading.Event()).wait(max(0.0, seconds))


@dataclass(frozen=True, slots=True)
class Clock:
    """What code that measures, waits or draws lots is given; a test passes its own."""

    now: Callable[[], float] = boottime
    """Seconds from an arbitrary origin, never going back."""
    wall: Callable[[], float] = time.time
    """Seconds since the epoch: only to read a date that somebody else wrote."""
    wait: Callable[[threading.Event | None, float], bool] = wait
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """What a coroutine waits by: in a thread of its loop's pool, a few that wait would keep all others from it."""
    uniform: Callable[[float, float], float] = random.uniform


SYSTEM = Clock()
