"""A settled key that one of its senders may still contradict (R36, R39)."""

from idempotency.conf import conf
from idempotency.exceptions import CallError
from idempotency.ledger import history, lookups
from idempotency.ledger.evidence import Snapshot, StepView
from idempotency.ledger.phases import phase
from idempotency.operations.registry import resolver_of
from idempotency.reconciliation import proof
from idempotency.reconciliation.findings import Findings
from idempotency.reconciliation.later import pause, put_off
from idempotency.reconciliation.report import Report
from idempotency.resilience import Deadline, deadline_scope
from idempotency.types import Applied, Ending, Pending, State


def watch(seen: Snapshot) -> Report:
    """Look for late news about a key that was settled while a sender was open (R36, R39)."""
    resolver = resolver_of(seen.identity.operation)
    findings = Findings()
    pending = False
    for step in seen.steps:
        quiet = not step.is_open and all(s.ending is not None for s in step.senders)
        if quiet or resolver is None:
            continue
        try:
            with deadline_scope(Deadline.after(conf.REQUEST_BUDGET)):
                answer = resolver.look_up(step=step.open_step)
        except CallError as error:
            put_off(seen.id, answered=False)
            return Report(seen.id, "unreachable", seen.state, str(error))
        if isinstance(answer, Applied):
            _note(step, answer, findings)
        if isinstance(answer, Pending):
            pending = True
            continue
        for sender in step.absence_counts(looked_at=seen.looked_at).proven:
            happened = isinstance(answer, Applied)
            ending = Ending.APPLIED if happened else Ending.ABSENT
            findings.ended[sender] = (ending, {"looked-up": type(answer).__name__.lower()})
    with phase(using=conf.DATABASE) as phases:
        version = proof.record(phases, seen=seen, findings=findings)
        if version is None:
            return Report(seen.id, "moved", seen.state)
        if findings.applied and seen.state in (State.RELEASED, State.COMPLETED):
            history.late_news(
                connection=phases.connection,
                key_id=seen.id,
                state=seen.state,
                actor="reconciler",
                detail={"references": [r.reference for r in findings.applied.values()]},
            )
        lookups.look_again(
            connection=phases.connection, key_id=seen.id, after=pause(seen.lookups), answered=True
        )
        if not pending:
            lookups.stop_watching(connection=phases.connection, key_id=seen.id, after=conf.KEY_TTL)
    decision = "applied" if findings.applied else "not-yet"
    return Report(seen.id, decision, seen.state, watched=True)


def _note(step: StepView, answer: Applied, findings: Findings) -> None:
    """Keep what is new: that it happened, or that it happened again."""
    first = step.result or answer.result
    others = {answer.result.reference, *answer.again} - {first.reference}
    findings.again |= dict.fromkeys(others, first.reference)
    if step.result is None:
        findings.applied[step.id] = answer.result
