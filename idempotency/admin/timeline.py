"""Everything that is on record about one key, as one story in order of time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from idempotency.admin.moments import Moment
from idempotency.admin.redaction import evidence, shown
from idempotency.conf import conf
from idempotency.http.header import mask
from idempotency.models import Event, Key, Operation, Sender, Step
from idempotency.types import Ending, State

MOST = 200
"""Lines of one kind, the latest: a key that was tried for weeks must not make its page slow."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened."""

    at: datetime
    what: str
    who: str = ""
    tone: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    evidence: str = ""
    when: Moment | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An outside call, with every process that may have sent it."""

    step: Step
    senders: list[Sender]


def timeline(
    key: Key, work: Operation | None, calls: list[Call], *, now: datetime, revealed: bool
) -> list[Line]:
    """Return the story of a key, the first line first."""
    lines = [
        *_of_key(key, revealed),
        *_of_work(work, revealed),
        *(line for call in calls for line in _of_call(call, revealed)),
        *_of_events(key, revealed),
    ]
    ordered = sorted(lines, key=lambda line: line.at)
    return [
        Line(x.at, x.what, x.who, x.tone, x.facts, x.evidence, Moment.of(x.at, now=now))
        for x in ordered
    ]


def calls_of(key: Key) -> list[Call]:
    """Return the outside calls of a key, over all its lives."""
    steps = list(Step.objects.using(conf.DATABASE).filter(key_id=key.pk).order_by("-pk")[:MOST])
    senders = Sender.objects.using(conf.DATABASE).filter(step__in=[step.pk for step in steps])
    by_step: dict[int, list[Sender]] = {}
    for sender in senders.order_by("-pk")[:MOST]:
        by_step.setdefault(sender.step_id, []).append(sender)
    return [Call(step, by_step.get(step.pk, [])) for step in steps]


# -- the key itself ----------------------------------------------------------------------------------------------------


def _of_key(key: Key, revealed: bool) -> Iterator[Line]:
    again = "" if key.generation == 1 else f" again, after its time to live (life {key.generation})"
    asked = {"request id": mask(key.request_id), "trace": key.traceparent}
    yield Line(key.created_at, f"Key claimed{again}", key.scope, facts=_told(asked))
    if (key.claimed_at - key.created_at).total_seconds() > 0.001:
        yield Line(
            key.claimed_at, "Claimed for another run", facts={"claim number": str(key.token)}
        )
    if key.unknown_since is not None:
        yield Line(key.unknown_since, "Outcome unknown from here on", tone="warn")
    if key.needs_person_since is not None:
        why = _told({"why": key.needs_person_reason})
        yield Line(key.needs_person_since, "A person is needed", tone="bad", facts=why)
    if key.settled_at is not None:
        answered = {} if key.status is None or key.deferred else {"answer": str(key.status)}
        facts, rest = evidence(key.evidence, revealed=revealed)
        what = "completed" if key.state == State.COMPLETED else "released: nothing happened"
        told = answered | facts
        yield Line(key.settled_at, f"Settled as {what}", f"by {key.settled_by}", "good", told, rest)


def _of_work(work: Operation | None, revealed: bool) -> Iterator[Line]:
    if work is None:
        return
    yield Line(
        work.created_at, f"Work accepted for later: {work.name}", facts={"operation": str(work.pk)}
    )
    if work.attempts:
        begun = (
            f"{work.attempts} in all, {work.cycle_attempts} of {work.max_attempts} in this cycle"
        )
        error = {"last error": mask(work.last_error)} if work.last_error else {}
        yield Line(work.updated_at, "Runs so far", facts={"begun": begun, **error})
    if work.error is not None:
        yield Line(
            work.updated_at,
            "Work ended with an error",
            tone="bad",
            evidence=shown(work.error, revealed=revealed),
        )


# -- outside calls -----------------------------------------------------------------------------------------------------

_ENDINGS = {
    Ending.APPLIED: ("It happened", "good"),
    Ending.REJECTED: ("The other side refused: nothing happened", "good"),
    Ending.NOT_APPLIED: ("The other side says: not executed", "good"),
    Ending.ABSENT: ("Looked up, and the other side does not know it: it did not happen", "good"),
    Ending.NOT_SENT: ("Not sent: no byte left this machine", "good"),
    Ending.AMBIGUOUS: ("No clear answer: it may have happened", "warn"),
}


def _of_call(call: Call, revealed: bool) -> Iterator[Line]:
    step = call.step
    name = f"“{step.name}” at {step.downstream}"
    facts = {
        "about": mask(step.subject),
        "gateway key": step.downstream_key,
        "rotation": str(step.rotation or ""),
        "life": "" if step.generation == 1 else str(step.generation),
        "repeats": "safe under the same key"
        if step.keyed
        else "never: this gateway honours no keys",
    }
    yield Line(step.first_send_at, f"Outside call {name} begun", facts=_told(facts))
    for sender in call.senders:
        yield from _of_sender(sender, name, revealed)
    if step.applied_at is not None:
        yield Line(
            step.applied_at,
            f"Proof that {name} happened",
            tone="good",
            facts=_told({"gateway reference": step.reference}),
        )


def _of_sender(sender: Sender, name: str, revealed: bool) -> Iterator[Line]:
    who = f"{sender.host}, process {sender.pid}"
    if sender.ending is None and sender.dead_at is None:
        yield Line(
            sender.begun_at,
            f"{name} may still be being sent",
            who,
            "warn",
            {"claim number": str(sender.token)},
        )
    if sender.dead_at is not None:
        yield Line(sender.dead_at, f"The process that sent {name} is proven dead", who)
    if sender.ending is not None and sender.ended_at is not None:
        what, tone = _ENDINGS[Ending(sender.ending)]
        facts, rest = evidence(sender.evidence, revealed=revealed)
        tries = {"tries": str(sender.attempts)} | facts
        yield Line(sender.ended_at, f"{name}: {what}", who, tone, tries, rest)


# -- events ------------------------------------------------------------------------------------------------------------

_KINDS = {
    "asked": "The gateway was asked, by hand",
    "retried": "A person let the work begin again",
    "cancelled": "A person cancelled the work",
    "settled-by-hand": "A person settled it",
    "late-news": "Late news: it happened although the key says otherwise",
    "staff-ask": "Somebody asked the gateway from this console",
    "staff-settle": "Somebody settled it by hand from this console",
    "staff-retry": "Somebody started a new cycle of runs",
    "staff-cancel": "Somebody cancelled the work",
    "staff-refused": "Refused: what was asked for is not allowed now",
    "staff-reveal": "Somebody looked at the stored data",
}


def _of_events(key: Key, revealed: bool) -> Iterator[Line]:
    events = Event.objects.using(conf.DATABASE).filter(key_id=key.pk).order_by("-pk")[:MOST]
    for event in events:
        detail = {name: value for name, value in event.detail.items() if name != "form"}
        facts, rest = evidence(detail, revealed=revealed)
        told = _told({"reason": mask(event.reason)}) | facts
        tone = "bad" if event.alarming else ""
        yield Line(event.at, event_title(event), event.actor, tone, told, rest)


def event_title(event: Event) -> str:
    """Return what kind of event it was, as a sentence."""
    return _KINDS.get(event.kind, event.kind.replace("-", " ").capitalize())


def _told(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if value}
