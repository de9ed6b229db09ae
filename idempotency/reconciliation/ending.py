"""Settling on evidence: the reconciler gives the very answer that the view would have given."""

from functools import partial

from django.http import HttpRequest
from django.views import View
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from idempotency import telemetry
from idempotency.answers import RequestSettler
from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.execution import Overtaken, Settled, execute
from idempotency.http.plain import PlainView
from idempotency.ledger import lookups, settlement
from idempotency.ledger.acquire import Won
from idempotency.ledger.claim import Claim
from idempotency.ledger.evidence import Snapshot
from idempotency.ledger.phases import Phases, phase
from idempotency.ledger.values import Settlement
from idempotency.operations.registry import Resolver
from idempotency.operations.resuming import resume_or_give_up
from idempotency.operations.settler import temporary_cause
from idempotency.reconciliation import proof
from idempotency.reconciliation.findings import Findings
from idempotency.reconciliation.later import put_off
from idempotency.reconciliation.report import Report
from idempotency.resilience import Deadline, deadline_scope
from idempotency.types import Applied, Rejected, State


def settle(seen: Snapshot, findings: Findings, resolver: Resolver | None, *, by: str) -> Report:
    with phase(using=conf.DATABASE) as phases:
        version = proof.record(phases, seen=seen, findings=findings)
    if version is None:
        return Report(seen.id, "moved", seen.state)
    kinds = {type(ending) for ending in findings.endings.values()}
    decision = "applied" if Applied in kinds else "rejected" if Rejected in kinds else "not-applied"
    evidence: dict[str, object] = {"looked_at": seen.looked_at.isoformat(), "decision": decision}
    if seen.deferred:
        state = resume_or_give_up(
            key_id=seen.id,
            token=seen.token,
            journal_version=version,
            applied=Applied in kinds,
            rejected=next((e for e in findings.endings.values() if isinstance(e, Rejected)), None),
            tolerated=findings.tolerated,
            settlement=Settlement(by=by, evidence=evidence),
        )
        if state is None:
            return Report(seen.id, "moved", seen.state)
        if state is State.UNKNOWN:
            # A step may be proven; the work as a whole is not. Of what nothing is proven nothing is said to be done.
            undone = "unfinished" if Applied in kinds else "needs-person"
            return Report(seen.id, undone, state, _standing(findings))
        return Report(seen.id, decision, state)
    if decision == "not-applied":
        return _release(seen, version, findings, resolver, Settlement(by=by, evidence=evidence))
    return _finish(seen, version, findings, resolver, by=by, decision=decision, evidence=evidence)


def _standing(findings: Findings) -> str:
    words = {name: type(ending).__name__.lower() for name, ending in findings.endings.items()}
    return ", ".join(f"{name}: {word}" for name, word in words.items())


def _release(
    seen: Snapshot,
    version: int,
    findings: Findings,
    resolver: Resolver | None,
    settled: Settlement,
) -> Report:
    phases = Phases(using=conf.DATABASE)
    phases.open()
    try:
        claim = take(phases, seen, version)
        if claim is None or not settlement.release(
            connection=phases.connection,
            key_id=seen.id,
            token=claim.token,
            settlement=settled,
            tolerate=findings.tolerated,
        ):
            phases.roll_back()
            return Report(seen.id, "moved", seen.state)
        watched = lookups.watch(
            connection=phases.connection, key_id=seen.id, after=conf.RECONCILE_EVERY
        )
        if resolver is not None:
            resolver.ended(claim=claim, state=State.RELEASED, error=None)
        phases.commit()
    finally:
        if phases.is_open:
            phases.roll_back()
    return Report(seen.id, "not-applied", State.RELEASED, watched=watched)


def _finish(
    seen: Snapshot,
    version: int,
    findings: Findings,
    resolver: Resolver | None,
    *,
    by: str,
    decision: str,
    evidence: dict[str, object],
) -> Report:
    """Do what the handler would have done after its calls; same answer, same bytes."""
    if resolver is None:
        put_off(seen.id, answered=True, needs_person="No resolver is registered for it.")
        return Report(seen.id, "needs-person", seen.state)
    phases = Phases(using=conf.DATABASE)
    phases.open()
    try:
        claim = take(phases, seen, version)
        if claim is None:
            return Report(seen.id, "moved", seen.state)
        view, request = stand_in(view_class=resolver.view, accepted=seen.accepted)
        settler = RequestSettler(
            view=view, request=request, by=by, evidence=evidence, ended=resolver.ended
        )
        began = SYSTEM.now()
        with deadline_scope(claim.deadline):
            ended = execute(
                claim=claim,
                run=partial(resolver.finish, claim=claim, endings=findings.endings),
                settler=settler,
            )
    finally:
        if phases.is_open:
            phases.roll_back()
    name = type(ended).__name__.lower()
    took = SYSTEM.now() - began
    who = "reconciler" if by == "reconciler" else "staff"
    telemetry.emit(telemetry.RunEnded(claim.operation, who, name, took, str(seen.id)))
    if isinstance(ended, Settled):
        return Report(seen.id, decision, State.COMPLETED)
    if isinstance(ended, Overtaken):
        return Report(seen.id, "moved", seen.state)
    error = ended.error
    if temporary_cause(error) is not None:
        # As for deferred work: what passes by itself, e.g. a full disk, calls nobody and ages no key.
        put_off(seen.id, answered=False, seen=seen)
        return Report(seen.id, "unreachable", State.UNKNOWN, f"{type(error).__name__}: {error}")
    why = f"{type(error).__name__}: {error}" if error else "it was answered with a failure"
    put_off(seen.id, answered=True, needs_person=f"It cannot be finished: {why}")
    return Report(seen.id, "needs-person", State.UNKNOWN, str(error or ""))


def take(phases: Phases, seen: Snapshot, version: int) -> Claim | None:
    """Make the key this process's own in the open phase; None where it or its journal has moved since."""
    token = settlement.take_over(
        connection=phases.connection,
        key_id=seen.id,
        token=seen.token,
        journal_version=version,
        lease=conf.LEASE,
    )
    if token is None:
        return None
    won = Won(
        id=seen.id,
        identity=seen.identity,
        token=token,
        generation=seen.generation,
        fresh=False,
    )
    deadline = Deadline.after(conf.REQUEST_BUDGET)
    return Claim(identity=seen.identity, phases=phases, won=won, deadline=deadline)


def stand_in(
    *, view_class: type[View], accepted: str
) -> tuple[APIView | PlainView, Request | HttpRequest]:
    """Return a view and a request that render as those of the first caller did.

    Args:
        accepted: the media type that was negotiated then.
    """
    plain = HttpRequest()
    plain.method = "POST"
    if not issubclass(view_class, APIView):
        return PlainView(plain), plain
    view = view_class()
    if accepted:
        plain.META["HTTP_ACCEPT"] = accepted
    view.args, view.kwargs, view.format_kwarg = (), {}, None
    if isinstance(view, ViewSetMixin):
        # What as_view() would have given it; without routes no method has an action.
        view.action_map, view.detail = {}, False
    request = view.initialize_request(plain)
    view.request = request
    negotiated = view.perform_content_negotiation(request, force=True)
    request.accepted_renderer, request.accepted_media_type = negotiated
    return view, request
