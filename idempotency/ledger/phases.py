"""The transactions of one claim (R13): open while the handler works, closed while it calls outside.

# Note [Phases]
A claim opens a transaction, and the handler runs in it. An outside call commits it first, calls with no transaction
open, and opens the next one when the call has ended. So a handler cannot talk to the network inside a transaction: by
then there is none.

The handler's writes are undone with their transaction, and what the ledger needs to keep is written again in the next
one: how the last call ended, or nothing yet (Note [Draft]). Only where a claim has changed a row that was there before
it, a savepoint stands between the two.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from django.db import Error, InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import TransactionManagementError
from psycopg.pq import TransactionStatus

from idempotency.conf import conf
from idempotency.exceptions import Misuse, OutsideCallInTransaction
from idempotency.resilience import is_conflict

logger = logging.getLogger(__name__)


class Phases:
    """The open phase of one claim on one database alias; at most one is open at a time."""

    def __init__(self, *, using: str, idle: float | None = None) -> None:
        self._using = using
        self._idle = idle
        self._outer: transaction.Atomic | None = None
        self._effects: transaction.Atomic | None = None
        self._at_work = False
        self._depth = 0
        self.commit_is_open = False
        """Whether the last COMMIT may have been carried out although it failed here."""
        self._thread = get_ident()

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection on which every statement of the claim runs."""
        return connections[self._using]

    @property
    def using(self) -> str:
        """The database alias."""
        return self._using

    @property
    def idle_limit(self) -> str:
        """How long the server lets a phase sit idle before it ends it: a frozen process holds a key no longer."""
        seconds = conf.REQUEST_BUDGET if self._idle is None else self._idle
        return f"{seconds * 1000:.0f}ms"

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open now."""
        return self._outer is not None

    @property
    def is_within_a_test(self) -> bool:
        """Whether no phase is open and a transaction is: a host's TestCase around it, with the test's own rows."""
        return not self.is_open and self.connection.in_atomic_block

    def open(self) -> None:
        """Begin a phase.

        Raises:
            Misuse: the caller already has a transaction open, so that nothing could be committed before a call.
        """
        outer = transaction.atomic(using=self._using, durable=True)
        try:
            outer.__enter__()
        except RuntimeError as error:
            raise Misuse(
                "A claim was made inside an open transaction, so it could not be committed before an outside call. "
                "Under ATOMIC_REQUESTS mark the view: @method_decorator(transaction.non_atomic_requests, "
                'name="dispatch") on a class, @transaction.non_atomic_requests on a function.'
            ) from error
        self._outer, self._thread = outer, get_ident()

    def begin_effects(self, *, alone: bool = False) -> None:
        """Begin the handler's own writes, which can be undone for themselves.

        Args:
            alone: the ledger has written nothing in this phase that it could not write again, so that it takes no
                savepoint: to undo them is to undo the phase.
        """
        if not alone:
            effects = transaction.atomic(using=self._using)
            effects.__enter__()
            self._effects = effects
        self._at_work, self._depth = True, len(self.connection.savepoint_ids)

    def keep_effects(self) -> None:
        """Let the handler's writes stand with the ledger's.

        Raises:
            django.db.transaction.TransactionManagementError: the handler swallowed a database error, or has left a
                transaction of its own open: nothing would be committed.
        """
        if not self._at_work:
            return
        if len(self.connection.savepoint_ids) != self._depth:
            raise TransactionManagementError("The handler has left an atomic() block open.")
        if self.connection.needs_rollback or self._is_broken():
            raise TransactionManagementError(
                "The handler caught a database error and went on in a broken transaction."
            )
        self._at_work = False
        effects, self._effects = self._effects, None
        if effects is not None:
            effects.__exit__(None, None, None)

    def undo_effects(self) -> bool:
        """Undo the handler's writes; a phase is open still. Return whether it is another one, begun anew."""
        if not self._at_work:
            return False
        self._leave_blocks()
        self._at_work = False
        effects, self._effects = self._effects, None
        if effects is not None:
            effects.__exit__(_Undo, _Undo(), None)
            return False
        self._end_by_undoing()
        self.open()
        return True

    def require_thread(self) -> None:
        """Refuse another thread than that of the phase: its connection is another one.

        Raises:
            Misuse: it is another one.
        """
        if get_ident() != self._thread:
            raise Misuse("A claim is used in another thread than its handler's.")

    def require_own(self) -> None:
        """Refuse an outside call unless this claim's phase is the innermost transaction.

        Raises:
            OutsideCallInTransaction: the handler is inside an `atomic()` of its own.
            Misuse: as for `require_thread`.
        """
        self.require_thread()
        if not self._at_work or len(self.connection.savepoint_ids) != self._depth:
            raise OutsideCallInTransaction(
                "An outside call inside the handler's own atomic() block: what must be on record before the call "
                "could not be committed. Make the call outside that block."
            )

    def commit(self) -> None:
        """End the phase, keeping what it wrote; what fails of the functions that were to follow is logged.

        Raises:
            django.db.Error: the commit failed, or its acknowledgement was lost: what happened is not known here.
        """
        self.keep_effects()
        outer, self._outer = self._outer, None
        if outer is None:
            return
        if self.connection.atomic_blocks[:1] == [outer]:
            # Not so inside a host's TestCase, where nothing is committed and nothing follows.
            _log_what_follows(self.connection)
        self.commit_is_open = True
        try:
            outer.__exit__(None, None, None)
        except Error as error:
            lost = isinstance(error, OperationalError | InterfaceError)
            # Whatever else the server answers says that it rolled back.
            self.commit_is_open = lost and not is_conflict(error)
            raise
        self.commit_is_open = False

    def leave(self) -> None:
        """End a phase that wrote nothing: by COMMIT, since at a ROLLBACK psycopg forgets what it has prepared."""
        try:
            self.commit()
        except Error:
            self.abandon()

    def roll_back(self) -> None:
        """End the phase, keeping nothing."""
        try:
            if self._effects is not None:
                self.undo_effects()
            self._leave_blocks()
            self._at_work = False
            self._end_by_undoing()
        except Error:
            self.abandon()

    def abandon(self) -> None:
        """Forget the phase and close its connection: the server undoes what was not committed."""
        self._outer = self._effects = None
        self._at_work = self.commit_is_open = False
        connection = self.connection
        connection.savepoint_ids.clear()
        connection.atomic_blocks.clear()
        connection.in_atomic_block = connection.needs_rollback = False
        connection.run_on_commit.clear()
        # Also one that the handler has closed already: Django would keep it, for its own block to be left.
        connection.closed_in_transaction = False
        connection.close()

    def _leave_blocks(self) -> None:
        """Leave the handler's own blocks that are open still: they are undone with this one, as the innermost."""
        left = len(self.connection.savepoint_ids) - self._depth
        if self._at_work and left > 0:
            del self.connection.savepoint_ids[-left:]
            del self.connection.atomic_blocks[-left:]

    def _is_broken(self) -> bool:
        """Whether the server has given the transaction up: a COMMIT would be a rollback, and no error."""
        raw = self.connection.connection
        return raw is not None and raw.info.transaction_status == TransactionStatus.INERROR

    def _end_by_undoing(self) -> None:
        outer, self._outer = self._outer, None
        if outer is not None:
            outer.__exit__(_Undo, _Undo(), None)


def _log_what_follows(connection: Any) -> None:
    """Take the errors from the functions of `on_commit()`: committed is committed, whatever hangs on it."""
    connection.run_on_commit = [
        (savepoints, _logged(function), robust)
        for savepoints, function, robust in connection.run_on_commit
    ]


def _logged(function: Callable[[], object]) -> Callable[[], None]:
    # Django's own `robust=True` raises while it logs a callable without a name, e.g. a partial.
    def call() -> None:
        try:
            function()
        except Exception:
            logger.exception("A function of on_commit() failed")

    return call


class _Undo(Exception):
    """Tells Django's atomic to roll back."""


@contextmanager
def phase(*, using: str) -> Iterator[Phases]:
    """Run the body in one committed transaction without a handler: for what the ledger writes by itself."""
    phases = Phases(using=using)
    phases.open()
    try:
        yield phases
    except BaseException:
        phases.roll_back()
        raise
    phases.commit()
