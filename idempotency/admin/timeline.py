"""Everything that is on record about one key, as one story in order of time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from idempotency.admin import sentences
from idempotency.admin.moments import Moment
from idempotency.admin.occurrences import occurrence
from idempotency.admin.redaction import evidence
from idempotency.admin.situations import Situation
from idempotency.admin.told import stored_problem
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
    key: Key,
    work: Operation | None,
    calls: list[Call],
    *,
    found: Situation,
    caller: str,
    now: datetime,
    revealed: bool,
) -> list[Line]:
    """Return the story of a key, the first line first."""
    lines = [
        *_of_key(key, found, caller, revealed),
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


_SETTLED = {
    Situation.REFUSED: "Closed as refused",
    Situation.GAVE_UP: "Closed as given up",
    Situation.CANCELLED: "Closed as cancelled",
    Situation.TAKEN_IN: "Message taken in",
}


def _of_key(key: Key, found: Situation, caller: str, revealed: bool) -> Iterator[Line]:
    again = "" if key.generation == 1 else f" again, after its time to live (life {key.generation})"
    asked = {"request id": mask(key.request_id), "trace": key.traceparent}
    yield Line(key.created_at, f"Key claimed{again}", caller, facts=_told(asked))
    if (key.claimed_at - key.created_at).total_seconds() > 0.001:
        yield Line(
            key.claimed_at, "Claimed for another run", facts={"claim number": str(key.token)}
        )
    if key.unknown_since is not None:
        yield Line(key.unknown_since, "Outcome unknown from here on", tone="warn")
    if key.needs_person_since is not None:
        why = _told({"why": mask(key.needs_person_reason)})
        yield Line(key.needs_person_since, "A person is needed", tone="bad", facts=why)
    if key.settled_at is not None:
        without = key.status is None or key.deferred or key.settled_by == "message"
        answered = {} if without else {"answer": f"{key.status} {stored_problem(key)}".rstrip()}
        facts, rest = evidence(key.evidence, revealed=revealed)
        done = "Settled as completed" if key.state == State.COMPLETED else _RELEASED
        what, by = _SETTLED.get(found, done), f"by {sentences.who(key.settled_by)}"
        yield Line(key.settled_at, what, by, "good", answered | facts, rest)


_RELEASED = "Settled as released"


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
        facts, rest = evidence(work.error, revealed=revealed)
        yield Line(work.updated_at, "The work ended without being done", "", "warn", facts, rest)


# -- outside calls -----------------------------------------------------------------------------------------------------

# What was so at its time and stays so: accepted may be undecided still, and what is not there may come late.
_ENDINGS = {
    Ending.APPLIED: ("The other side accepted it", "good"),
    Ending.REJECTED: ("The other side refused it", "good"),
    Ending.NOT_APPLIED: ("The other side said: not executed", "good"),
    Ending.ABSENT: ("Looked up, and the other side did not know it", "good"),
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
            f"Proof that the other side accepted {name}",
            tone="good",
            facts=_told({"gateway reference": mask(step.reference)}),
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


def _of_events(key: Key, revealed: bool) -> Iterator[Line]:
    events = Event.objects.using(conf.DATABASE).filter(key_id=key.pk).order_by("-pk")[:MOST]
    for event in events:
        said = occurrence(event, revealed=revealed)
        yield Line(event.at, said.title, event.actor, said.tone, said.facts, said.rest)


def _told(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if value}
