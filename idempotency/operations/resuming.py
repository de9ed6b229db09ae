"""Go on with deferred work once there is evidence of what became of a run (R36).

Reconciliation calls this for deferred keys, as it calls a resolver's `finish` for requests.
"""

import dataclasses
import uuid

from django.db import connections

from idempotency.conf import conf
from idempotency.exceptions import CallRejected
from idempotency.execution import Settled
from idempotency.ledger import due, lookups
from idempotency.ledger import settlement as settling
from idempotency.ledger.claim import Claim
from idempotency.ledger.due import Work
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Settlement
from idempotency.operations import wake
from idempotency.operations.registry import Definition, definition_of, resolver_of
from idempotency.operations.runner import Unfinished, claim_for, run_handler
from idempotency.operations.settler import DeferredSettler, temporary_cause
from idempotency.resilience import Deadline
from idempotency.types import Rejected, State


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

    Applied: the handler is run over its record, here and now: the end of the attempt that was begun, not another
    one. Where it wants more than the record holds, the work waits for another run. Rejected: it ends with that verdict.
    Neither: it waits again or, at the cycle's limit, gives up. What is done in part, or has a sender that may still
    act, never gives up: at the limit it needs a person.

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
        settler = DeferredSettler(
            work=taken, definition=definition, settlement=settlement, tolerate=tolerated
        )
        if applied:
            found = dataclasses.replace(found, token=token)
            return _resume(found, taken, definition, settler, journal_version, phases)
        claim = claim_for(taken, phases, Deadline.after(definition.time_limit))
        claim.resumed = True
        return _without_effect(claim, taken, settler, rejected, tolerated=tolerated)
    finally:
        if phases.is_open:
            phases.roll_back()


def _resume(
    found: Work,
    taken: Work,
    definition: Definition,
    settler: DeferredSettler,
    journal_version: int,
    phases: Phases,
) -> State:
    """Finish from the record alone. What it takes to do more is an attempt, and a worker's."""
    claim = claim_for(taken, phases, Deadline.after(definition.time_limit))
    claim.resumed = claim.replaying = True
    ended = run_handler(claim, taken, definition, settler)
    if isinstance(ended, Settled):
        return State.COMPLETED
    error = getattr(ended, "error", None)
    if not isinstance(error, Unfinished):
        # Each such run makes the key's unknown time begin anew, so that no bound of time or tries would be met (R38).
        hopeless = error is not None and temporary_cause(error) is None
        _look_again(taken, f"It cannot be finished: {_describe(error)}" if hopeless else "")
        return State.UNKNOWN
    if taken.is_last:
        _look_again(taken, "No attempt is left, and the work is done only in part.")
        return State.UNKNOWN
    return _do_the_rest(found, definition, journal_version, phases)


def _do_the_rest(
    found: Work, definition: Definition, journal_version: int, phases: Phases
) -> State:
    """Let the work wait for a run, which gets the applied steps from the record."""
    phases.open()
    taken = _take_over(phases, found, found.token, journal_version, definition.lease)
    if taken is None or not settling.wait_again(
        connection=phases.connection,
        key_id=taken.key_id,
        token=taken.token,
        delay=0,
        over_applied=True,
    ):
        phases.roll_back()
        return State.UNKNOWN
    wake.nudge(key_id=taken.key_id)
    phases.commit()
    return State.IN_PROGRESS


def _look_again(work: Work, needs_person: str) -> None:
    lookups.look_again(
        connection=connections[conf.DATABASE],
        key_id=work.key_id,
        after=conf.LOOKUP_BACKOFF_CAP if needs_person else conf.RECONCILE_EVERY,
        answered=True,
        needs_person=needs_person,
    )


def _describe(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {error}"


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
    _look_again(work, "No attempt is left, and one of its senders may still act.")
    return State.UNKNOWN
