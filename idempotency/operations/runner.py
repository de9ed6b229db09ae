"""Run deferred work: take a row that is due, run its handler, settle it or let it wait (R32, R33).

drain ─ run ─┬─ which operations may begin now? (breakers and bulkheads are asked first)
├─ take: lease, token, attempt, one commit
├─ hold: the first phase, fenced
└─ execute ─ settle
"""

import dataclasses
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections

from idempotency import telemetry
from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.exceptions import CallRejected
from idempotency.execution import Ended, Overtaken, Settled, execute
from idempotency.ledger import due, lookups, queries
from idempotency.ledger import settlement as settling
from idempotency.ledger.acquire import Won
from idempotency.ledger.claim import Claim
from idempotency.ledger.due import Work
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Settlement
from idempotency.operations.registry import Definition, definition_of, definitions, resolver_of
from idempotency.operations.settler import DeferredSettler
from idempotency.resilience import Deadline, deadline_scope
from idempotency.types import Rejected, State

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
"""After which `drain` begins no further run: a task that may begin one more must end within its hard limit."""
_POSTPONED = 1_000
"""Rows that one statement puts off while their operation is refused."""
_PATIENCE = 2.0
"""Seconds to wait for a lost connection's transaction to end on the server."""


def drain(*, seconds: float = DRAIN_SECONDS, stop: Callable[[], bool] = lambda: False) -> int:
    """Run what is due, oldest first, until nothing is, the seconds are over, or `stop` says so; return how many ran."""
    until = Deadline.after(seconds)
    ran = 0
    while not stop() and run() is not None:
        ran += 1
        if until.expired:
            break
    return ran


def run(*, key_id: uuid.UUID | None = None) -> Ended | None:
    """Run one piece of work that is due, that of the key if one is named; None where there is nothing to run.

    A second message about the same work finds the lease, and leaves.
    """
    began = SYSTEM.now()
    able, refused = _able_and_refused()
    connection = connections[conf.DATABASE]
    if refused:
        due.postpone(connection=connection, waits=refused, limit=_POSTPONED, key_id=key_id)
    work = _take({name: each.lease for name, each in able.items()}, key_id)
    if work is None:
        return None
    definition = able[work.name]
    deadline = Deadline(at=began + definition.time_limit)
    ended = _execute(work, definition, deadline)
    took = SYSTEM.now() - began
    name = type(ended).__name__.lower()
    telemetry.emit(telemetry.RunEnded(work.name, "worker", name, took, str(work.key_id)))
    return ended


def _able_and_refused() -> tuple[dict[str, Definition], dict[str, float]]:
    """Return the operations that may begin now, and for how many seconds the others are to wait."""
    able, refused = {}, {}
    for definition in definitions():
        wait = _refused_for(definition)
        if wait is None:
            able[definition.name] = definition
        else:
            refused[definition.name] = wait
    return able, refused


def _refused_for(definition: Definition) -> float | None:
    """Return for how many seconds a run would be refused, or None where it may begin."""
    if definition.refusal is None:
        return None
    try:
        refusal = definition.refusal()
    except Exception:
        # Whatever is wrong with one operation's guard, the others go on.
        logger.exception("%s: whether it may begin cannot be asked", definition.name)
        return conf.RETRY_CAP
    return None if refusal is None else float(refusal.retry_after or conf.RETRY_CAP)


# -- take --------------------------------------------------------------------------------------------------------------


def _take(leases: dict[str, float], key_id: uuid.UUID | None) -> Work | None:
    phases = Phases(using=conf.DATABASE)
    work: Work | None = None
    try:
        phases.open()
        work = due.take(connection=phases.connection, leases=leases, key_id=key_id)
        phases.commit()
    except (DatabaseError, InterfaceError):
        phases.abandon()
        if work is None or not _was_taken(phases, work):
            raise
    return work


def _was_taken(phases: Phases, work: Work) -> bool:
    """Whether a commit whose acknowledgement was lost has given this process the row: the token is its own (R35)."""
    phases.open()
    key = queries.standing(phases=phases, identity=work.identity, patience=_PATIENCE)
    phases.roll_back()
    return key is not None and key.token == work.token and key.state is State.IN_PROGRESS


# -- execute -----------------------------------------------------------------------------------------------------------


def _execute(work: Work, definition: Definition, deadline: Deadline) -> Ended:
    phases = Phases(using=conf.DATABASE)
    claim = _claim(work, phases, deadline)
    # The attempt is on record: however the run ends, its ending is to be written.
    claim.called = True
    try:
        phases.open()
        if not due.hold(
            connection=phases.connection,
            key_id=work.key_id,
            token=work.token,
            idle=definition.time_limit,
        ):
            phases.roll_back()
            return Overtaken()
        settler = DeferredSettler(
            work=work, definition=definition, settlement=Settlement(by="worker")
        )
        return _run_handler(claim, work, definition, settler)
    finally:
        if phases.is_open:
            phases.roll_back()


def _claim(work: Work, phases: Phases, deadline: Deadline) -> Claim:
    won = Won(
        id=work.key_id,
        identity=work.identity,
        token=work.token,
        generation=work.generation,
        fresh=not work.call_begun,
        resource=work.resource,
    )
    return Claim(identity=work.identity, phases=phases, won=won, deadline=deadline)


def _run_handler(
    claim: Claim, work: Work, definition: Definition, settler: DeferredSettler
) -> Ended:
    run_handler: Callable[[], Any] = partial(definition.handler, claim=claim, input=work.input)
    with deadline_scope(claim.deadline):
        ended = execute(claim=claim, run=run_handler, settler=settler)
    error = getattr(ended, "error", None)
    if error is not None:
        logger.warning("%s: run %s ended in %r", work.name, work.attempts, error, exc_info=error)
    return ended


# -- after evidence ----------------------------------------------------------------------------------------------------


def resume_or_give_up(
    *,
    key_id: uuid.UUID,
    token: int,
    journal_version: int,
    applied: bool,
    rejected: Rejected | None = None,
    tolerated: bool = False,
    settlement: Settlement,
) -> State | None:
    """Go on with deferred work whose outcome was unknown and for which there is evidence now (R36).

    Applied: the handler is run again, here and now, and gets the recorded results; that is the end of the attempt that
    was begun, not another one. Rejected: it ends with that verdict. Neither: it waits again or, at the cycle's limit,
    gives up; while a sender may still act it never gives up, but asks for a person.

    Args:
        token, journal_version: of the key when the evidence was recorded.
        tolerated: a sender that never ended may still send, under the same downstream key.

    Returns: the key's state now, or None where key or journal have moved since.
    """
    phases = Phases(using=conf.DATABASE)
    phases.open()
    try:
        found = due.read_work(connection=phases.connection, key_id=key_id)
        if found is None:
            return None
        definition = definition_of(found.name)
        taken = _take_over(phases, found, token, journal_version, definition.lease)
        if taken is None:
            return None
        claim = _claim(taken, phases, Deadline.after(definition.time_limit))
        claim.resumed = True
        settler = DeferredSettler(
            work=taken, definition=definition, settlement=settlement, tolerate=tolerated
        )
        if applied:
            ended = _run_handler(claim, taken, definition, settler)
            return State.COMPLETED if isinstance(ended, Settled) else State.UNKNOWN
        return _without_effect(claim, taken, settler, rejected, tolerated=tolerated)
    finally:
        if phases.is_open:
            phases.roll_back()


def _take_over(
    phases: Phases, found: Work, token: int, journal_version: int, lease: float
) -> Work | None:
    new_token = settling.take_over(
        connection=phases.connection,
        key_id=found.key_id,
        token=token,
        journal_version=journal_version,
        lease=lease,
    )
    return None if new_token is None else dataclasses.replace(found, token=new_token)


def _without_effect(
    claim: Claim,
    work: Work,
    settler: DeferredSettler,
    rejected: Rejected | None,
    *,
    tolerated: bool,
) -> State:
    if rejected is not None:
        refused = CallRejected(
            rejected.detail,
            code=rejected.code,
            reference=rejected.result.reference,
            record=rejected.result.record,
        )
        resolver = resolver_of(claim.operation) or resolver_of(work.name)
        verdict = resolver.verdict(refused) if resolver is not None else refused
        wrote, state = settler.refused(claim, verdict), State.COMPLETED
    elif work.is_last and tolerated:
        wrote, state = False, State.UNKNOWN
    else:
        wrote = settler.not_applied(claim)
        state = State.COMPLETED if work.is_last else State.IN_PROGRESS
    if wrote:
        claim.phases.commit()
        return state
    claim.phases.roll_back()
    lookups.look_again(
        connection=claim.phases.connection,
        key_id=claim.id,
        after=conf.LOOKUP_BACKOFF_CAP,
        answered=True,
        needs_person="No attempt is left, and one of its senders may still act.",
    )
    return State.UNKNOWN
