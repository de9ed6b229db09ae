"""How a key stands, in the words of this console: finer than its state, and one for every row there can be."""

import enum
from datetime import datetime

from idempotency.ledger import census
from idempotency.models import Key
from idempotency.types import News, State


class Situation(enum.StrEnum):
    """What a person has to know about a key first."""

    LATE_NEWS = "late-news"
    DONE_TWICE = "done-twice"
    DONE_DIFFERENTLY = "done-differently"
    NEEDS_PERSON = "needs-person"
    STUCK_HALFWAY = "stuck-halfway"
    UNFINISHED = "unfinished"
    UNKNOWN = "unknown"
    LAPSED = "lapsed"
    RUNNING = "running"
    OVERDUE = "overdue"
    WAITING = "waiting"
    GAVE_UP = "gave-up"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    COMPLETED = "completed"
    RELEASED = "released"
    TAKEN_IN = "taken-in"


CONTRADICTED = {
    Situation.LATE_NEWS: News.OTHERWISE,
    Situation.DONE_TWICE: News.TWICE,
    Situation.DONE_DIFFERENTLY: News.DIFFERENT,
}
"""What the other side has said against a settlement: it stays true after a person has seen to it."""

OVERDUE_AFTER = census.LATE_AFTER
"""Seconds for which due work may lie before it counts as late."""


def situation(
    key: Key, *, now: datetime, error: object = None, news: News | None = None
) -> Situation:
    """Return how the key stands.

    Args:
        error: how its deferred work ended, if it ended badly.
        news: what the other side said against its settlement, also where a person has seen to it.
    """
    match State(key.state):
        case State.UNKNOWN:
            if key.needs_person_since is not None:
                return Situation.STUCK_HALFWAY if key.unfinished else Situation.NEEDS_PERSON
            return Situation.UNFINISHED if key.unfinished else Situation.UNKNOWN
        case State.IN_PROGRESS:
            return _in_progress(key, now)
        case State.COMPLETED | State.RELEASED if key.needs_person_since is not None:
            # The ledger itself wrote the sentence, so it tells which news it was.
            return _TOLD.get(key.needs_person_reason, Situation.LATE_NEWS)
        case State.COMPLETED | State.RELEASED if news is not None:
            # Seen to by a person, it has happened all the same.
            return _NEWS.get(news, Situation.LATE_NEWS)
        case State.COMPLETED:
            return _completed(key, error)
        case State.RELEASED:
            return Situation.RELEASED


_NEWS = {news: found for found, news in CONTRADICTED.items()}
_TOLD = {news.sentence: found for news, found in _NEWS.items()}
_BADLY = {"gave-up": Situation.GAVE_UP, "cancelled": Situation.CANCELLED}


def _completed(key: Key, error: object) -> Situation:
    if key.settled_by == "message":
        return Situation.TAKEN_IN
    if key.deferred:
        code = error.get("code") if isinstance(error, dict) else None
        return Situation.COMPLETED if error is None else _BADLY.get(str(code), Situation.REFUSED)
    return Situation.REFUSED if (key.status or 0) >= 400 else Situation.COMPLETED


def _in_progress(key: Key, now: datetime) -> Situation:
    if key.due_at is not None:
        late = (now - key.due_at).total_seconds() > OVERDUE_AFTER
        return Situation.OVERDUE if late else Situation.WAITING
    lapsed = key.lease_until is not None and key.lease_until <= now
    return Situation.LAPSED if lapsed else Situation.RUNNING
