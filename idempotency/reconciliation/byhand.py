"""What a person may decide about a key that nobody knows the outcome of, and what not (R36, R37).

A decision goes through the same journal and the same settlement as any other. It needs a look-up first, a reason, and
evidence; it is recorded with them.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta

from django.db import connections

from idempotency.answers import RequestSettler
from idempotency.conf import conf
from idempotency.exceptions import CallError, NotProven
from idempotency.http import problem
from idempotency.ledger import history, lookups, settlement
from idempotency.ledger.evidence import Snapshot, StepView
from idempotency.ledger.phases import Phases, phase
from idempotency.ledger.values import Settlement
from idempotency.operations.registry import Resolver, resolver_of
from idempotency.reconciliation.ending import settle, stand_in, take
from idempotency.reconciliation.findings import Findings, judge
from idempotency.reconciliation.report import Refused, Report
from idempotency.reconciliation.single import reconcile
from idempotency.resilience import Deadline, deadline_scope
from idempotency.types import Absent, Applied, Ending, Pending, State


def ask_now(*, key_id: uuid.UUID, actor: str) -> Report:
    """Reconcile one key because a person wants to know now."""
    report = reconcile(key_id=key_id, by=actor)
    _record(key_id, "asked", actor, "", {"decision": report.decision, "detail": report.detail})
    return report


def settle_by_hand(
    *,
    key_id: uuid.UUID,
    happened: bool,
    actor: str,
    reason: str,
    evidence: Mapping[str, object],
) -> Report:
    """Settle an unknown key as a person has found it at the other side.

    Args:
        reason: why; mandatory.
        evidence: what was seen. Where it happened, `reference` is the other side's id of it.

    Raises:
        Refused: the ledger holds evidence against it, nobody has asked the other side yet, or a sender may still act.
    """
    if not reason.strip():
        raise Refused("A reason is needed.")
    seen, resolver = _require_open(key_id)
    if happened:
        report = _happened(seen, resolver, actor=actor, evidence=evidence)
    else:
        report = _did_not_happen(seen, resolver, actor=actor, reason=reason, evidence=evidence)
    detail = {"happened": happened, "decision": report.decision, "evidence": dict(evidence)}
    _record(key_id, "settled-by-hand", actor, reason, detail)
    return report


def _require_open(key_id: uuid.UUID) -> tuple[Snapshot, Resolver]:
    seen = lookups.snapshot(connection=connections[conf.DATABASE], key_id=key_id)
    if seen is None:
        raise Refused("There is no such key any more.")
    if seen.state is not State.UNKNOWN:
        raise Refused(f"The key is {seen.state}: only an unknown one is settled by hand.")
    if seen.lookups == 0:
        raise Refused("Ask the other side first: no look-up has been answered yet.")
    resolver = resolver_of(seen.identity.operation)
    if resolver is None:
        raise Refused("No resolver is registered for this operation, so it cannot be finished.")
    return seen, resolver


def _happened(
    seen: Snapshot, resolver: Resolver, *, actor: str, evidence: Mapping[str, object]
) -> Report:
    steps = [step for step in seen.steps if step.is_open]
    reference = str(evidence.get("reference", "")).strip()
    if not reference:
        raise Refused("The other side's id of it is needed as evidence.")
    if len(steps) != 1:
        raise Refused(f"{len(steps)} steps are open; exactly one can be settled by hand.")
    (step,) = steps
    try:
        with deadline_scope(Deadline.after(conf.REQUEST_BUDGET)):
            result = resolver.by_hand(step=step.open_step, reference=reference)
    except NotProven as error:
        raise Refused(str(error)) from error
    findings = judge(seen, {step.id: Applied(result)})
    return settle(seen, findings, resolver, by=actor)


def _did_not_happen(
    seen: Snapshot,
    resolver: Resolver,
    *,
    actor: str,
    reason: str,
    evidence: Mapping[str, object],
) -> Report:
    if any(step.result is not None for step in seen.steps):
        raise Refused("A step is recorded as applied: it happened, at least in part.")
    open_steps = [step for step in seen.steps if step.is_open]
    _ask_once_more(open_steps, resolver)
    settled = Settlement(by=actor, evidence={"reason": reason, **evidence})
    if any(_may_still_act(seen, step) for step in open_steps):
        return _close_as_not_done(seen, resolver, settled)
    findings = Findings(endings={step.name: Absent() for step in seen.steps})
    for step in open_steps:
        absence = step.absence_counts(looked_at=seen.looked_at)
        if absence.wait_until is not None:
            wait = (absence.wait_until - seen.looked_at).total_seconds()
            raise Refused(f"The settling time is not over: ask again in {wait:.0f} seconds.")
        for sender in absence.proven:
            findings.ended[sender] = (Ending.ABSENT, {"by": actor, "reason": reason})
        findings.tolerated |= absence.tolerated
    return settle(seen, findings, resolver, by=actor)


def _ask_once_more(steps: Sequence[StepView], resolver: Resolver) -> None:
    """Refuse a "no" that the other side contradicts: what a person saw some time ago may have changed (R36)."""
    for step in steps:
        try:
            with deadline_scope(Deadline.after(conf.REQUEST_BUDGET)):
                answer = resolver.look_up(step=step.open_step)
        except CallError as error:
            raise Refused(f"The other side cannot be asked now: {error}") from error
        if isinstance(answer, Applied):
            raise Refused(f"The other side says that it happened: {answer.result.reference}.")
        if isinstance(answer, Pending):
            raise Refused(
                "The other side knows it and has not decided: it may still happen. Have it cancelled there first."
            )


def _may_still_act(seen: Snapshot, step: StepView) -> bool:
    """Whether a send could still be applied under a key that the other side does not honour."""
    if step.keyed:
        return False
    settling: timedelta = step.settling
    quiet = [sender.ended_at or sender.dead_at for sender in step.senders]
    return any(since is None or since + settling > seen.looked_at for since in quiet)


def _close_as_not_done(seen: Snapshot, resolver: Resolver, settled: Settlement) -> Report:
    """Complete the key with the error, and watch it: releasing it could charge twice."""
    if seen.deferred:
        raise Refused("A sender may still act; deferred work is not closed meanwhile.")
    phases = Phases(using=conf.DATABASE)
    phases.open()
    try:
        claim = take(phases, seen, seen.journal_version)
        if claim is None:
            return Report(seen.id, "moved", seen.state)
        view, request = stand_in(view_class=resolver.view, accepted=seen.accepted)
        verdict = problem.NotDone(operation_ref=str(seen.id))
        settler = RequestSettler(view=view, request=request, ended=resolver.ended)
        settlement.complete(
            connection=phases.connection,
            key_id=seen.id,
            token=claim.token,
            answer=settler.answer_to(verdict),
            settlement=settled,
            called=True,
            refusal=True,
            over_open=True,
        )
        lookups.watch(connection=phases.connection, key_id=seen.id, after=conf.RECONCILE_EVERY)
        resolver.ended(claim=claim, state=State.COMPLETED, error=verdict)
        phases.commit()
    finally:
        if phases.is_open:
            phases.roll_back()
    return Report(seen.id, "not-done", State.COMPLETED)


def _record(
    key_id: uuid.UUID, kind: str, actor: str, reason: str, detail: Mapping[str, object]
) -> None:
    with phase(using=conf.DATABASE) as phases:
        history.record(
            connection=phases.connection,
            key_id=key_id,
            kind=kind,
            actor=actor,
            reason=reason,
            detail=detail,
        )
