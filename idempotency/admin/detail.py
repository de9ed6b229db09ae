"""One key on one page: the line to read aloud, what it means, what to do, its story, its data."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from idempotency.admin import sentences
from idempotency.admin.accepted import accepted
from idempotency.admin.advice import (
    ADVICE,
    Advice,
    of_accepted,
    of_seen_to,
    of_undecided,
    of_undone,
    of_unkept,
    of_watched,
    runbook_address,
    trace_address,
)
from idempotency.admin.known import NOTHING, known, note, noted
from idempotency.admin.moments import duration
from idempotency.admin.news import news
from idempotency.admin.redaction import shown
from idempotency.admin.situations import CONTRADICTED, OVERDUE_AFTER, Situation, situation
from idempotency.admin.timeline import Call, calls_of, timeline
from idempotency.admin.told import address_of, stored_problem
from idempotency.conf import conf
from idempotency.exceptions import Misuse
from idempotency.http.header import mask
from idempotency.ledger import moment, sealing
from idempotency.models import Key, Operation
from idempotency.types import Known, State

BODIES = ("body", "headers", "fingerprint", "fingerprint_parts", "evidence", "traceparent")
"""What no list needs to read from disk."""


@dataclass(frozen=True, slots=True)
class Look:
    """A key as it stands at one moment."""

    key: Key
    work: Operation | None
    calls: list[Call]
    now: datetime
    situation: Situation
    known: Known = NOTHING
    accepted: bool = False
    """The answer is a refusal, and a call of it was accepted all the same."""

    @property
    def advice(self) -> Advice:
        """What the situation means."""
        advice, done = ADVICE[self.situation], self.situation is Situation.COMPLETED
        if self.situation in CONTRADICTED and self.key.needs_person_since is None:
            return of_seen_to(advice)
        if done and self.known.undecided:
            return of_undecided(advice)
        if done and self.known.undone:
            return of_undone(advice)
        if done and self._is_unkept:
            return of_unkept(advice)
        if self._is_half_refused:
            return of_accepted(advice)
        if self.key.watched and self.situation in (Situation.RELEASED, Situation.REFUSED):
            return of_watched(advice)
        return advice

    @property
    def _is_half_refused(self) -> bool:
        # What came to nothing at the other side afterwards, as the host knows, is refused and no more.
        return self.accepted and self.situation is Situation.REFUSED and not self.known.undone

    @property
    def _is_unkept(self) -> bool:
        """Whether a repeat does not get the answer: it was never kept, or is forgotten, purged or not."""
        kept = timedelta(seconds=conf.RESULT_TTL)
        forgotten = (self.key.settled_at or self.now) + kept <= self.now
        # Deferred work is asked about at its status monitor.
        return not self.key.deferred and (bool(self.key.note) or forgotten)

    @property
    def line(self) -> str:
        """The line to read aloud."""
        return f"{self.subject}: {self.standing}"

    @property
    def standing(self) -> str:
        """The line without what the key is about."""
        done = "taken on" if self.known.undecided else "settled" if self.known.undone else "done"
        said = sentences.standing(
            self.key, self.situation, now=self.now, done=done, accepted=self._is_half_refused
        )
        return f"{said}; {self.known.since}" if self.known.since else said

    @property
    def caller(self) -> str:
        """Who called, as the host names them, else their scope."""
        return self.known.owner or self.key.scope

    @property
    def subject(self) -> str:
        """What the key is about."""
        return sentences.subject(self.key)

    @property
    def problem(self) -> str:
        """The code of the problem that the caller's program was told, or is told meanwhile, or ""."""
        if self.advice.problem:
            return self.advice.problem
        error = self.work.error if self.work else None
        return str(error.get("code", "")) if isinstance(error, dict) else stored_problem(self.key)

    @property
    def is_open_matter(self) -> bool:
        """Whether somebody may have to do something about it."""
        return self.advice.tone in ("warn", "bad")

    @property
    def sought(self) -> str:
        """By what a person finds the calls of the key at the other side, as far as the ledger was told."""
        names = [self.key.reference, *(call.step.subject for call in self.calls)]
        return ", ".join(dict.fromkeys(mask(name) for name in names if name))

    @property
    def unanswered(self) -> str:
        """For how long no look-up has been answered of a key that waits for one, or ""."""
        since = self.key.unknown_since
        if self.key.state != State.UNKNOWN or since is None or self.key.lookups:
            return ""
        seconds = (self.now - since).total_seconds()
        return duration(seconds) if seconds > OVERDUE_AFTER else ""


def look(key: Key) -> Look:
    """Read all that is on record about a key."""
    work = Operation.objects.using(conf.DATABASE).filter(key_id=key.pk).first()
    now = moment.counted()
    ours = news([key]).get(key.pk)
    found = situation(key, now=now, error=work.error if work else None, news=ours)
    hosts = known([key]).get(key.pk, NOTHING)
    return Look(key, work, calls_of(key), now, found, hosts, key.pk in accepted([key]))


def looks(ids: Iterable[uuid.UUID]) -> list[Look]:
    """Read all that is on record about several keys, the oldest first."""
    return [look(key) for key in _rows(ids)]


def glances(ids: Iterable[uuid.UUID]) -> list[Look]:
    """Return how several keys stand, the oldest first, in a few queries."""
    rows = list(_rows(ids).defer("body").select_related("work"))
    note(rows)
    return [glance(key) for key in rows]


def _rows(ids: Iterable[uuid.UUID]) -> QuerySet[Key]:
    return Key.objects.using(conf.DATABASE).filter(pk__in=list(ids)).order_by("created_at")


def glance(key: Key) -> Look:
    """Return how a key stands, from a row that was read with its deferred work: enough to decide what may be done."""
    work = key.work if key.deferred and hasattr(key, "work") else None
    now = moment.counted()
    hosts, ours, is_accepted = noted(key)
    found = situation(key, now=now, error=work.error if work else None, news=ours)
    return Look(key, work, [], now, found, hosts, is_accepted)


def page(seen: Look, *, revealed: bool = False) -> dict[str, Any]:
    """Return what the template of the page needs."""
    story = timeline(
        seen.key,
        seen.work,
        seen.calls,
        found=seen.situation,
        caller=seen.caller,
        now=seen.now,
        revealed=revealed,
    )
    return {
        "seen": seen,
        "advice": seen.advice,
        "runbook": runbook_address(seen.situation.value),
        "problem": address_of(seen.problem),
        "trace": trace_address(seen.key.traceparent),
        "facts": _facts(seen),
        "timeline": story,
        "hidden": any(line.evidence for line in story),
        "documents": _documents(seen, revealed=revealed),
        "revealed": revealed,
    }


def _facts(seen: Look) -> list[tuple[str, str]]:
    key, work = seen.key, seen.work
    facts = [
        ("State", key.state),
        ("Reference", mask(key.reference)),
        ("Resource", mask(key.resource)),
        ("Key", mask(key.key)),
        ("Caller", seen.known.owner),
        ("Scope", key.scope),
        ("Operation", key.operation),
        ("operation_ref", str(key.pk)),
        (
            "Gateway reference",
            mask(", ".join(c.step.reference for c in seen.calls if c.step.reference)),
        ),
        ("Answer", _answer(key)),
        ("Look-ups so far", str(key.lookups or "")),
        ("Deferred work", f"{work.name}, {work.pk}" if work else ""),
        ("Request id", mask(key.request_id)),
        ("Trace", key.traceparent),
        (
            "Life",
            ""
            if key.generation == 1
            else f"{key.generation}: the key was used before and had expired",
        ),
    ]
    return [(name, value) for name, value in facts if value]


def _answer(key: Key) -> str:
    if key.status is None or key.settled_by == "message":
        return ""
    why = {"expired": "no longer kept", "": ""}.get(key.note, f"not kept ({key.note})")
    stored = "stored for repeats" if key.body is not None else why
    return f"{key.status}, {stored}" if stored else str(key.status)


def _documents(seen: Look, *, revealed: bool) -> list[tuple[str, str]]:
    key, work = seen.key, seen.work
    documents: list[tuple[str, Any]] = []
    if key.body and key.settled_by == "message":
        documents.append(("The message as it came", _open(key.body)))
    elif key.body is not None and key.settled_by != "message":
        documents.append(
            (f"Answer to the caller ({key.status}, {key.content_type})", _open(key.body))
        )
    for call in seen.calls:
        documents.append((f"Sent outside as “{call.step.name}”", _open(call.step.payload)))
        if call.step.result is not None:
            documents.append((f"What “{call.step.name}” came back with", _open(call.step.result)))
    if work is not None:
        documents.append(("Input of the deferred work", _open(work.input)))
        if work.result is not None:
            documents.append(("Result of the deferred work", _open(work.result)))
    return [(title, shown(value, revealed=revealed)) for title, value in documents]


def _open(stored: Any) -> Any:
    """Return what is stored, readable; or why it is not."""
    try:
        return sealing.unseal_json(stored) if isinstance(stored, dict) else _bytes(stored)
    except Misuse as error:
        return {"sealed": str(error)}


def _bytes(stored: Any) -> Any:
    return sealing.unseal(stored) if isinstance(stored, bytes | memoryview) else stored
