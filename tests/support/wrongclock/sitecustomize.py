"""A process whose host's clock is wrong: found by Python at its start, by PYTHONPATH; off by CLOCK_IS_OFF seconds.

PostgreSQL's clock and the monotonic ones go on as they are.
"""

import datetime as dt
import os
import time

OFF = float(os.environ["CLOCK_IS_OFF"])
RIGHT = dt.datetime
_seconds, _nanoseconds = time.time, time.time_ns


class _AnyDatetime(type):
    """The C library, e.g. of psycopg, makes times of the class that was there before."""

    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, RIGHT)


class Wrong(dt.datetime, metaclass=_AnyDatetime):
    """A time of day that is off wherever it is asked for."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        return RIGHT.now(tz) + dt.timedelta(seconds=OFF)

    @classmethod
    def utcnow(cls) -> dt.datetime:  # type: ignore[override]
        return cls.now(dt.UTC).replace(tzinfo=None)


dt.datetime = Wrong  # type: ignore[misc]
time.time = lambda: _seconds() + OFF
time.time_ns = lambda: _nanoseconds() + int(OFF * 1e9)
