"""Admission: turning work away before anything is done for it, in microseconds."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import NoReturn

from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import Refused
from idempotency.resilience.deadline import current_deadline
from idempotency.telemetry import AdmissionRefused, emit

_CODES = {
    "client-gone": ("overloaded", "the client has gone away"),
    "no-time": ("no-time", "too little time is left to do this"),
    "in-flight": ("overloaded", "as much work as allowed is under way already"),
    "backlog": ("overloaded", "the work that waits already cannot be done in time"),
}


class Admission:
    """Decides at the door of a kind of work whether it is worth beginning; per process.

    Args:
        name: the work's name in events.
        in_flight: so many at once; None: no limit.
        least_time: seconds that must be left of the ambient deadline.
        backlog: returns the seconds that the waiting work needs; for work that is deferred.
        backlog_limit: more seconds than this are refused.
        backlog_every: seconds for which one answer of `backlog` is believed.
        retry_after: seconds to tell the caller.
    """

    def __init__(
        self,
        *,
        name: str,
        in_flight: int | None = None,
        least_time: float = 0.0,
        backlog: Callable[[], float] | None = None,
        backlog_limit: float = 60.0,
        backlog_every: float = 1.0,
        retry_after: float = 1.0,
        clock: Clock = SYSTEM,
    ) -> None:
        if in_flight is not None and in_flight < 1:
            raise ValueError(f"{name}: in_flight must be at least 1, not {in_flight}")
        self.name = name
        self._in_flight_limit, self._least_time = in_flight, least_time
        self._backlog, self._backlog_limit = backlog, backlog_limit
        self._backlog_every, self._retry_after = backlog_every, retry_after
        self._clock = clock
        self._lock = Lock()
        self._in_flight = 0
        self._backlog_seen = 0.0
        self._backlog_read_at = float("-inf")

    @contextmanager
    def enter(
        self, *, client_gone: Callable[[], bool] | None = None
    ) -> Generator[None, None, None]:
        """Do the work inside, or refuse it.

        `client_gone` tells whether the caller still waits, where the server can know it.

        Raises:
            Refused: the work was not begun.
        """
        if client_gone is not None and client_gone():
            self._refuse("client-gone")
        deadline = current_deadline()
        if deadline is not None and deadline.left() < self._least_time:
            self._refuse("no-time")
        waiting = self._read_backlog()
        if waiting > self._backlog_limit:
            self._refuse("backlog", retry_after=waiting - self._backlog_limit)
        with self._lock:
            admitted = self._in_flight_limit is None or self._in_flight < self._in_flight_limit
            self._in_flight += admitted
        if not admitted:
            self._refuse("in-flight")
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1

    def _read_backlog(self) -> float:
        if self._backlog is None:
            return 0.0
        with self._lock:
            now = self._clock.now()
            due = now >= self._backlog_read_at + self._backlog_every
            if due:
                # This request reads it; the others believe the last answer meanwhile.
                self._backlog_read_at = now
        if due:
            self._backlog_seen = self._backlog()
        return self._backlog_seen

    def _refuse(self, reason: str, *, retry_after: float = 0.0) -> NoReturn:
        emit(AdmissionRefused(admission=self.name, reason=reason))
        code, detail = _CODES[reason]
        raise Refused(detail, code=code, retry_after=max(retry_after, self._retry_after))
