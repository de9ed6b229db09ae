"""Endings of calls that the database was not there to take (R19, R22).

A process that lives on is never proven dead, so an ending that it alone knows would leave its step open for as long as
it lives, and call a person about a call whose answer had arrived. It is kept in memory until the database is back, and
written by the next piece of work that this process begins, or at its orderly end. Otherwise it dies with the process,
which can then be proven dead where that is on the same machine.
"""

import atexit
import logging
import os
import threading
import uuid
from collections import deque
from dataclasses import dataclass

from django.db import DataError, Error, IntegrityError, connections

from idempotency.clock import SYSTEM, Clock
from idempotency.conf import conf
from idempotency.ledger import journal
from idempotency.ledger.journal import OpenSender, StepEnding
from idempotency.ledger.phases import phase

logger = logging.getLogger(__name__)

_PAUSE = 1.0
"""Seconds between two tries: an outage is not made longer for who comes next."""
_LOCKS = "500ms"
"""Time that one of them waits for a key that somebody else is writing."""
_ROOM = 1_000
"""Endings kept; beyond that the oldest is dropped, and reconciled as if this process had never known it."""


@dataclass(frozen=True, slots=True)
class Owed:
    """How one series of sends ended, as only this process knows."""

    key_id: uuid.UUID
    token: int
    sender: OpenSender
    ending: StepEnding


class Owing:
    """What this process has still to write."""

    def __init__(self, *, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._owed: deque[Owed] = deque(maxlen=_ROOM)
        self._paying = threading.Lock()
        self._not_before = 0.0

    def owe(self, owed: Owed) -> None:
        """Keep an ending until the database takes it."""
        ending = owed.ending
        # Should the process die with it, the log is the only trace of what the other side said.
        logger.error(
            "Key %s: its call ended as %s (reference %r), and the database did not take that; kept in this process",
            owed.key_id,
            ending.ending.value,
            ending.reference,
        )
        self._owed.append(owed)

    def pay(self) -> None:
        """Write what is owed if there is something and the database takes it; what goes wrong waits for a next time.

        So does all of it where the caller has a transaction open: it would be undone with that.
        """
        if not self._owed or connections[conf.DATABASE].in_atomic_block:
            return
        if not self._paying.acquire(blocking=False):
            return
        try:
            if self._clock.now() >= self._not_before:
                self._write_all()
        finally:
            self._paying.release()

    def forget(self) -> None:
        """Forget everything: in a child of the process, whose parent still owes it."""
        self._owed.clear()
        self._paying = threading.Lock()

    def _write_all(self) -> None:
        for _ in range(len(self._owed)):
            owed = self._owed.popleft()
            try:
                _write(owed)
            except (DataError, IntegrityError):
                logger.exception("Key %s: the ending of its call cannot be written", owed.key_id)
            except BaseException as error:
                # Whatever else stood in the way says nothing against the ending: an outage, a server that takes no
                # writes, the end of this thread's work.
                self._owed.append(owed)
                self._not_before = self._clock.now() + _PAUSE
                if not isinstance(error, Error):
                    raise
                logger.warning("Key %s: the ending of its call waits: %s", owed.key_id, error)
                return


def _write(owed: Owed) -> None:
    with phase(using=conf.DATABASE) as phases:
        with phases.connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [_LOCKS])
        journal.end(
            phases=phases,
            key_id=owed.key_id,
            token=owed.token,
            sender=owed.sender,
            ending=owed.ending,
        )


_PROCESS = Owing()
owe, pay = _PROCESS.owe, _PROCESS.pay
atexit.register(pay)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.forget)
