"""Run deferred work: take a row that is due, run its handler, settle it or let it wait (R32, R33).

`drain` repeats `run`, and a run is:

    which operations may begin now?      breakers and bulkheads are asked first, and use up no attempt
    take                                 lease, token, attempt: one statement, one commit
    hold                                 the first phase, fenced
    execute, settle                      completed, waits again, gave up, unknown
"""

import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError, connections

from idempotency import telemetry, tracing
from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.exceptions import IdempotencyError
from idempotency.execution import Ended, Overtaken, execute
from idempotency.ledger import due, owed, queries
from idempotency.ledger.acquire import Won
from idempotency.ledger.claim import Claim
from idempotency.ledger.due import Work
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Settlement
from idempotency.operations.registry import Definition, definitions
from idempotency.operations.settler import DeferredSettler
from idempotency.resilience import Deadline, deadline_scope, retry_transaction
from idempotency.types import State

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
"""After which `drain` begins no further run: a task that may begin one more must end within its hard limit."""
_POSTPONED = 1_000
"""Rows that one statement puts off while their operation is refused."""
_PATIENCE = 2.0
"""Seconds to wait for a lost connection's transaction to end on the server."""


class Unfinished(IdempotencyError):
    """The record does not hold all that the handler wants: another run has to do the rest."""


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
    owed.pay()
    began = SYSTEM.now()
    able, refused = _able_and_refused()
    connection = connections[conf.DATABASE]
    if refused:
        due.postpone(connection=connection, waits=refused, limit=_POSTPONED, key_id=key_id)
    leases = {name: each.lease for name, each in able.items()}
    work = retry_transaction(partial(_take, leases, key_id))
    if work is None:
        return None
    definition = able[work.name]
    deadline = Deadline(at=began + definition.time_limit)
    with tracing.span("run", of=work.traceparent, operation=work.name, key_id=str(work.key_id)):
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
    finally:
        if phases.is_open:
            phases.roll_back()
    return work


def _was_taken(phases: Phases, work: Work) -> bool:
    """Whether a commit whose acknowledgement was lost has given this process the row: the token is its own (R35)."""
    phases.open()
    key = queries.standing(phases=phases, identity=work.identity, patience=_PATIENCE)
    phases.roll_back()
    return key is not None and key.token == work.token and key.state is State.IN_PROGRESS


# -- execute -----------------------------------------------------------------------------------------------------------


def _execute(work: Work, definition: Definition, deadline: Deadline) -> Ended:
    phases = Phases(using=conf.DATABASE, idle=definition.time_limit)
    claim = claim_for(work, phases, deadline, held=True)
    # The attempt is on record: however the run ends, its ending is to be written.
    claim.called = True
    try:
        phases.open()
        if not due.hold(phases=phases, key_id=work.key_id, token=work.token):
            phases.roll_back()
            return Overtaken()
        settler = DeferredSettler(
            work=work, definition=definition, settlement=Settlement(by="worker")
        )
        return run_handler(claim, work, definition, settler)
    finally:
        if phases.is_open:
            phases.roll_back()


def claim_for(work: Work, phases: Phases, deadline: Deadline, *, held: bool = False) -> Claim:
    won = Won(
        id=work.key_id,
        identity=work.identity,
        token=work.token,
        generation=work.generation,
        fresh=not work.call_begun,
        resource=work.resource,
    )
    return Claim(identity=work.identity, phases=phases, won=won, deadline=deadline, held=held)


def run_handler(
    claim: Claim, work: Work, definition: Definition, settler: DeferredSettler
) -> Ended:
    def work_on() -> Any:
        return definition.handler(claim=claim, input=work.input)

    run = partial(_replayed, claim, work_on) if claim.replaying else work_on
    with deadline_scope(claim.deadline):
        ended = execute(claim=claim, run=run, settler=settler)
    error = getattr(ended, "error", None)
    if error is not None:
        logger.warning("%s: run %s ended in %r", work.name, work.attempts, error, exc_info=error)
    return ended


def _replayed(claim: Claim, handler: Callable[[], Any]) -> Any:
    """Run the handler over its record; whatever it makes of a missing step does not count."""
    try:
        value = handler()
    except Exception as error:
        if claim.missing:
            raise Unfinished(claim.missing) from error
        raise
    if claim.missing:
        raise Unfinished(claim.missing)
    return value
