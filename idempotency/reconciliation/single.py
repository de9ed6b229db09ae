"""One key: look it up, judge what the answers prove, settle it or come back later."""

import uuid
from dataclasses import replace

from django.db import connections

from idempotency import telemetry, tracing
from idempotency.conf import conf
from idempotency.exceptions import CallError
from idempotency.ledger import history, lookups, settlement
from idempotency.ledger.evidence import Snapshot
from idempotency.ledger.phases import phase
from idempotency.operations.registry import Resolver, resolver_of
from idempotency.reconciliation import proof
from idempotency.reconciliation.ending import settle
from idempotency.reconciliation.findings import Findings, judge
from idempotency.reconciliation.later import put_off
from idempotency.reconciliation.report import Report
from idempotency.reconciliation.watch import watch
from idempotency.resilience import Deadline, deadline_scope
from idempotency.types import LookUp, State

RECONCILER = "reconciler"
_SETTLED_NOTHING = frozenset({"not-yet", "pending", "unreachable", "needs-person", "unfinished"})


def reconcile(*, key_id: uuid.UUID, by: str = RECONCILER) -> Report:
    """Find out what happened to one key and settle it if that is known."""
    connection = connections[conf.DATABASE]
    # Where nobody sweeps, whoever asks about one key finds it as it really is, too.
    settlement.lapse(connection=connection, limit=1, key_id=key_id)
    seen = lookups.snapshot(connection=connection, key_id=key_id)
    if seen is None:
        return Report(key_id, "moved", None)
    operation = seen.identity.operation
    with tracing.span("reconcile", of=seen.traceparent, operation=operation, key_id=str(key_id)):
        report = _reconcile(seen, by)
        tracing.mark(decision=report.decision)
        if by == RECONCILER and report.decision in _SETTLED_NOTHING:
            note(report)
    telemetry.emit(telemetry.KeyReconciled(report.decision, str(key_id)))
    return report


def note(report: Report) -> None:
    """Let staff see that somebody looked, and what came of it; what settles a key is in its settlement."""
    with phase(using=conf.DATABASE) as phases:
        history.looked_up(
            connection=phases.connection,
            key_id=report.key_id,
            decision=report.decision,
            detail=report.detail,
        )


def _reconcile(seen: Snapshot, by: str) -> Report:
    if seen.state is not State.UNKNOWN:
        if seen.watched:
            return watch(seen)
        decision = "under-way" if seen.state is State.IN_PROGRESS else "settled"
        return Report(seen.id, decision, seen.state)
    resolver = resolver_of(seen.identity.operation)
    asked = _ask(seen, resolver)
    if isinstance(asked, Report):
        return asked
    findings = judge(seen, asked)
    if findings.stop is not None:
        return _stop(seen, findings)
    return settle(seen, findings, resolver, by=by)


def _ask(seen: Snapshot, resolver: Resolver | None) -> dict[int, LookUp] | Report:
    """Ask the other side about each step that may have been applied."""
    open_steps = [step for step in seen.steps if step.is_open]
    if not open_steps:
        return {}
    if resolver is None:
        put_off(seen.id, answered=True, needs_person="No resolver is registered for it.", seen=seen)
        return Report(seen.id, "needs-person", seen.state, "No resolver is registered.")
    answers: dict[int, LookUp] = {}
    for step in open_steps:
        try:
            with deadline_scope(Deadline.after(conf.REQUEST_BUDGET)):
                answers[step.id] = resolver.look_up(step=step.open_step)
        except CallError as error:
            put_off(seen.id, answered=False, seen=seen)
            return Report(seen.id, "unreachable", seen.state, f"{step.name}: {error}")
    return answers


def _stop(seen: Snapshot, findings: Findings) -> Report:
    """Nothing can be settled yet; what is already proven is kept."""
    if findings.applied:
        with phase(using=conf.DATABASE) as phases:
            proof.record(phases, seen=seen, findings=replace(findings, ended={}))
    put_off(
        seen.id,
        answered=True,
        needs_person=findings.needs_person,
        seen=seen,
        after=findings.retry_after,
    )
    return Report(seen.id, findings.stop or "", seen.state, findings.needs_person)
