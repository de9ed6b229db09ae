"""How a key stands, in the words of this console: finer than its state, and one for every row there can be."""

import enum
from datetime import datetime

from idempotency.ledger import census
from idempotency.models import Key
from idempotency.types import State


class Situation(enum.StrEnum):
    """What a person has to know about a key first."""

    LATE_NEWS = "late-news"
    NEEDS_PERSON = "needs-person"
    UNFINISHED = "unfinished"
    UNKNOWN = "unknown"
    LAPSED = "lapsed"
    RUNNING = "running"
    OVERDUE = "overdue"
    WAITING = "waiting"
    GAVE_UP = "gave-up"
    REFUSED = "refused"
    COMPLETED = "completed"
    RELEASED = "released"


OVERDUE_AFTER = census.LATE_AFTER
"""Seconds for which due work may lie before it counts as late."""


def situation(key: Key, *, now: datetime, error: object = None) -> Situation:
    """Return how the key stands.

    Args:
        error: how its deferred work ended, if it ended badly.
    """
    match State(key.state):
        case State.UNKNOWN:
            if key.needs_person_since is not None:
                return Situation.NEEDS_PERSON
            return Situation.UNFINISHED if key.unfinished else Situation.UNKNOWN
        case State.IN_PROGRESS:
            return _in_progress(key, now)
        case State.COMPLETED:
            if key.needs_person_since is not None:
                return Situation.LATE_NEWS
            if key.deferred:
                return Situation.GAVE_UP if error is not None else Situation.COMPLETED
            return Situation.REFUSED if (key.status or 0) >= 400 else Situation.COMPLETED
        case State.RELEASED:
            return Situation.RELEASED if key.needs_person_since is None else Situation.LATE_NEWS


def _in_progress(key: Key, now: datetime) -> Situation:
    if key.due_at is not None:
        late = (now - key.due_at).total_seconds() > OVERDUE_AFTER
        return Situation.OVERDUE if late else Situation.WAITING
    lapsed = key.lease_until is not None and key.lease_until <= now
    return Situation.LAPSED if lapsed else Situation.RUNNING
