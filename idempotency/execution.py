"""How the work ended becomes a settlement: here only (R13, R14, R15, R19).

    ended                       journal: no call   all steps ended, none applied   some applied   open or ambiguous
    a response below 500        completed          completed                       completed      unknown
    a refusal (400, 401 …)      free               released                        unknown        unknown
    a verdict (402, 409 …)      completed          completed                       unknown        unknown
    the call was refused        –                  completed                       unknown        unknown
    the call failed             free               released                        unknown        unknown
    anything else               free               released                        unknown        unknown

The journal has the last word, and it has it in the database: each write carries it in its WHERE, so a handler that
swallows an error, or a claim that was superseded, settles nothing that is not so.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from django.db import DataError, Error, IntegrityError
from django.db.transaction import TransactionManagementError

from idempotency.conf import conf
from idempotency.exceptions import CallUnknown, Fenced, LedgerUnavailable
from idempotency.faultpoints import reach
from idempotency.ledger import queries, settlement
from idempotency.ledger.claim import Claim, claim_scope
from idempotency.ledger.owed import Owed, owe

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


# -- how it can end ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settled:
    """The key has its final state, and it was this run that gave it."""


@dataclass(frozen=True, slots=True)
class Free:
    """Certainly nothing happened: the same key may be tried again. `error` is what was raised, if something was."""

    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody knows yet; reconciliation goes on from here."""

    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody else owns the key: answer from what it says now."""


Ended = Settled | Free | Unknown | Overtaken


class Settler(Protocol[T_contra]):
    """How one kind of run (a request, a deferred attempt, a reconciliation) writes its endings.

    Each method returns whether its compare-and-set wrote. `refused` is asked first whether the error is a final answer
    at all.
    """

    def completed(self, claim: Claim, value: T_contra) -> bool:
        """Write the answer that the handler returned."""

    def is_final(self, error: BaseException) -> bool:
        """Whether the error is an answer to keep (a verdict) rather than a failure to undo."""

    def refused(self, claim: Claim, error: BaseException) -> bool:
        """Write a final error, provided that nothing was applied."""

    def undone(self, claim: Claim, error: BaseException | None) -> bool:
        """Write that certainly nothing happened, provided that the journal agrees."""

    def is_failure(self, value: T_contra) -> bool:
        """Whether a returned value (a 5xx) counts as a failure.

        Raises: what a value that is no answer at all counts as.
        """


# -- the run -----------------------------------------------------------------------------------------------------------


def execute(*, claim: Claim, run: Callable[[], T], settler: Settler[T]) -> Ended:
    """Run the work in the claim's open phase and settle the key by how it ended.

    Cancellations (SystemExit, KeyboardInterrupt, GeneratorExit) settle like any error and then go on.
    """
    claim.begin_effects()
    try:
        with claim_scope(claim):
            value = run()
        failed = settler.is_failure(value)
    except BaseException as error:
        ended = _close(claim, settler, error, partial(_after_error, claim, settler, error))
        if not isinstance(error, Exception):
            raise
        return ended
    if failed:
        return _close(claim, settler, None, partial(_after_error, claim, settler, None))
    return _returned(claim, settler, value)


@contextmanager
def settling(*, claim: Claim, settler: Settler[None]) -> Iterator[None]:
    """Run a block in the claim's open phase and settle the key by how it ended; what it raised goes on.

    Raises:
        Fenced: the key has another owner; the block's effects are undone.
        CallUnknown: the block has ended, and whether it was kept is not known.
    """
    claim.begin_effects()
    try:
        with claim_scope(claim):
            yield
    except BaseException as error:
        _close(claim, settler, error, partial(_after_error, claim, settler, error))
        raise
    match _returned(claim, settler, None):
        case Settled():
            return
        case Free(error=raised) | Unknown(error=raised):
            raise raised or CallUnknown("Whether the work was kept is not known yet.")
        case Overtaken():
            raise Fenced("The key has another owner by now.")


def _returned(claim: Claim, settler: Settler[T], value: T) -> Ended:
    if claim.phases.is_open:
        return _close(claim, settler, None, partial(_after_value, claim, settler, value))
    # What it swallowed was the end of its transaction: there is none in which its answer could be kept.
    return _recover(claim, settler, LedgerUnavailable("The work went on without its transaction."))


def _close(
    claim: Claim,
    settler: Settler[T],
    error: BaseException | None,
    write: Callable[[], Ended],
) -> Ended:
    """Write the ending; where the database fails in the middle of it, find out what it kept (R19)."""
    try:
        if isinstance(error, Fenced):
            return _fenced(claim, error)
        if claim.phases.is_open:
            return write()
    except Error as broken:
        # A verdict that was not kept is not told either: the next try might come to another.
        told = error if error is not None and not settler.is_final(error) else broken
        return _recover(claim, settler, told, verdict=error if told is broken else None)
    return _recover(claim, settler, error)


def _fenced(claim: Claim, error: Fenced) -> Ended:
    """Undo what was done since; the ending of a call that is in the open phase is evidence, and stays (R22)."""
    if claim.called and claim.phases.is_open:
        claim.undo_effects()
        return _unsettled(claim, error)
    claim.phases.roll_back()
    return Overtaken()


def _after_value(claim: Claim, settler: Settler[T], value: T) -> Ended:
    try:
        wrote = settler.completed(claim, value)
        if wrote:
            claim.phases.keep_effects()
    except (IntegrityError, DataError, TransactionManagementError) as refused:
        return _after_error(claim, settler, refused)
    if wrote:
        reach("before_commit")
        claim.phases.commit()
        reach("after_commit")
        return Settled()
    claim.undo_effects()
    return _unsettled(claim, None)


def _after_error(claim: Claim, settler: Settler[T], error: BaseException | None) -> Ended:
    claim.undo_effects()
    final = error is not None and settler.is_final(error)
    if final and error is not None and settler.refused(claim, error):
        claim.phases.commit()
        return Settled()
    if final and claim.exists and claim.draft is not None:
        # A twin has claimed it since this run's writes were undone, and its answer is the one that counts.
        claim.phases.roll_back()
        return Overtaken()
    forbidden = isinstance(error, CallUnknown) and not claim.fresh
    if not claim.called and not forbidden:
        claim.phases.roll_back()
        return Unknown(error) if claim.resumed else Free(error)
    if not final and settler.undone(claim, error):
        claim.phases.commit()
        return Free(error)
    return _unsettled(claim, error, final=final)


def _unsettled(claim: Claim, error: BaseException | None, *, final: bool = False) -> Ended:
    """Nobody knows, or somebody else does."""
    if settlement.mark_unknown(
        connection=claim.phases.connection,
        key_id=claim.id,
        token=claim.token,
        lookup_after=conf.RECONCILE_EVERY,
        needs_person=_why_a_person(error, final=final),
    ):
        claim.phases.commit()
        return Unknown(error)
    # The ending of this claim's own step is evidence, and all that a superseded claim may leave.
    claim.phases.commit()
    return Overtaken()


def _why_a_person(error: BaseException | None, *, final: bool) -> str:
    if final:
        return "The work was refused after a step of it had been applied."
    if isinstance(error, IntegrityError | DataError):
        return (
            "The books differ: a step was applied, and the database refuses the rows that say so."
        )
    if isinstance(error, CallUnknown) and error.code == "resend-forbidden":
        return error.detail
    return ""


# -- the database failed -----------------------------------------------------------------------------------------------

_PATIENCE = 2.0
"""Seconds to wait for a lost connection's transaction to end on the server."""


def _recover(
    claim: Claim,
    settler: Settler[T],
    error: BaseException | None,
    *,
    verdict: BaseException | None = None,
) -> Ended:
    """Ask, on a new connection, what the database kept of this run, and leave the key in a state that says so.

    Args:
        error: what is told of a run of which nothing was kept.
        verdict: the answer whose settlement the database broke.
    """
    unsure = claim.called or claim.phases.commit_is_open
    if not claim.phases.is_within_a_test:
        claim.phases.abandon()
    try:
        claim.phases.open()
        key = queries.standing(phases=claim.phases, identity=claim.identity, patience=_PATIENCE)
        if key is not None and key.id == claim.id and key.settled_under(claim.token):
            claim.phases.roll_back()
            return Settled()
        if key is not None and key.id != claim.id:
            claim.phases.roll_back()
            return Overtaken()
        never_kept = key is None or key.token < claim.token
        if never_kept or not claim.called:
            claim.phases.roll_back()
            # Of a run without a key there is no row that could tell.
            return Unknown(error) if unsure and not claim.exists else Free(error)
        return _recover_called(claim, settler, error, verdict)
    except Error:
        claim.phases.abandon()
        if claim.last_ending is not None:
            owe(Owed(claim.id, claim.token, *claim.last_ending))
        return Unknown(error) if unsure else Free(error)


def _recover_called(
    claim: Claim,
    settler: Settler[T],
    error: BaseException | None,
    verdict: BaseException | None,
) -> Ended:
    claim.record_ending()
    if verdict is not None and settler.refused(claim, verdict):
        claim.phases.commit()
        return Settled()
    if settler.undone(claim, error):
        claim.phases.commit()
        return Free(error)
    return _unsettled(claim, error)
