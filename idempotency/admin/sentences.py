"""One line that can be read aloud: what it is, how it stands, what comes next."""

from datetime import datetime
from typing import Literal, assert_never

from idempotency.admin.moments import day_and_time, distance, duration
from idempotency.admin.situations import CONTRADICTED, Situation
from idempotency.http.header import mask
from idempotency.models import Key


def subject(key: Key) -> str:
    """Return what the key is about: the host's own line, or the operation's name."""
    if key.summary:
        return mask(key.summary)
    return f"{key.operation} for {mask(key.reference)}" if key.reference else key.operation


def standing(
    key: Key, found: Situation, *, now: datetime, done: str = "done", accepted: bool = False
) -> str:
    """Return how it stands, without what it is.

    Args:
        done: what is said of a completed key: the other side may not have decided yet, or have refused it since.
        accepted: whether a call of a refused key was accepted before.
    """
    match found:
        case (
            Situation.UNKNOWN
            | Situation.UNFINISHED
            | Situation.NEEDS_PERSON
            | Situation.STUCK_HALFWAY
        ):
            return _unknown(key, found, now)
        case Situation.RUNNING | Situation.LAPSED:
            return _held(key, found, now)
        case Situation.WAITING | Situation.OVERDUE:
            return _due(key, found, now)
        case _:
            return _settled(key, found, _at(key.settled_at, now), done, accepted=accepted)


_Settled = Literal[
    Situation.COMPLETED,
    Situation.REFUSED,
    Situation.GAVE_UP,
    Situation.CANCELLED,
    Situation.RELEASED,
    Situation.TAKEN_IN,
    Situation.LATE_NEWS,
    Situation.DONE_TWICE,
    Situation.DONE_DIFFERENTLY,
]


def _settled(key: Key, found: _Settled, at: str, done: str, *, accepted: bool) -> str:
    # A send that can still arrive may yet make it happen.
    nothing = "nothing has happened so far" if key.watched else "nothing happened"
    if accepted:
        nothing = "a call of it was accepted before"
    match found:
        case Situation.COMPLETED:
            return f"{done} at {at}{_answered(key)}"
        case Situation.REFUSED:
            return f"refused at {at}{_answered(key)}; {nothing}"
        case Situation.GAVE_UP:
            return f"given up at {at}; {nothing}"
        case Situation.CANCELLED:
            return f"cancelled at {at} by {who(key.settled_by)}; {nothing}"
        case Situation.TAKEN_IN:
            return f"taken in at {at}"
        case Situation.RELEASED:
            return f"{nothing}, settled at {at}; the same key may be tried again"
        case Situation.LATE_NEWS | Situation.DONE_TWICE | Situation.DONE_DIFFERENTLY:
            settled = "settled" if found is Situation.LATE_NEWS else "done"
            why = mask(key.needs_person_reason) or CONTRADICTED[found].sentence
            return f"{settled} at {at}, but: {why.rstrip('.')}"
        case _:
            assert_never(found)


def _held(key: Key, found: Situation, now: datetime) -> str:
    if found is Situation.RUNNING:
        left = _seconds(key.lease_until, now)
        return f"running since {_at(key.claimed_at, now)}, for at most {duration(left)} more"
    since = f"no word since {_at(key.claimed_at, now)}"
    return f"{since}, unknown since {_at(key.lease_until, now)}; the look-up is next"


def _due(key: Key, found: Situation, now: datetime) -> str:
    if found is Situation.OVERDUE:
        return f"was due at {_at(key.due_at, now)} and no worker has taken it since"
    if _seconds(key.due_at, now) <= 0:
        return "waits for a worker, due now"
    return f"waits, next run {_far(key.due_at, now)}"


def _unknown(key: Key, found: Situation, now: datetime) -> str:
    half = "half done" if key.unfinished else "unknown"
    line = f"{half} since {_at(key.unknown_since, now)}"
    if found in (Situation.NEEDS_PERSON, Situation.STUCK_HALFWAY):
        why = mask(key.needs_person_reason).rstrip(".")
        line += f", needs a person ({why})" if why else ", needs a person"
    if key.next_lookup_at is None:
        return f"{line}; no look-up is planned"
    if key.next_lookup_at <= now:
        return f"{line}, next look-up due now"
    return f"{line}, next look-up {_far(key.next_lookup_at, now)}"


def who(settled_by: str) -> str:
    """Return who settled a key, for people: a caller is named by its scope elsewhere on the page."""
    return "the caller" if settled_by.startswith("caller ") else settled_by or "?"


def _answered(key: Key) -> str:
    return "" if key.deferred or key.status is None else f" with {key.status}"


def _at(at: datetime | None, now: datetime) -> str:
    return "?" if at is None else day_and_time(at, now=now)


def _far(at: datetime | None, now: datetime) -> str:
    return "?" if at is None else distance(at, now=now)


def _seconds(at: datetime | None, now: datetime) -> float:
    return 0.0 if at is None else (at - now).total_seconds()
