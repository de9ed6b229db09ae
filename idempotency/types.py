"""Values that cross the rooms: small, frozen, without behaviour of their own. Pure Python."""

import enum
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


class State(enum.StrEnum):
    """Where a key is in its life."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    RELEASED = "released"
    UNKNOWN = "unknown"


class News(enum.StrEnum):
    """What is wrong where the other side says something that a key's settlement does not say (R39)."""

    OTHERWISE = "otherwise"
    TWICE = "twice"
    DIFFERENT = "different"
    UNRECORDED = "unrecorded"
    UNREADABLE = "unreadable"

    @property
    def sentence(self) -> str:
        """What a person reads; a key that needs one for this keeps it, so the sentence tells which news it was."""
        return _NEWS[self]


_NEWS = {
    News.OTHERWISE: "It happened at the other side after the key was settled otherwise.",
    News.TWICE: "The other side says that it happened a second time.",
    News.DIFFERENT: "The other side did something else than was asked for, e.g. with another amount.",
    News.UNRECORDED: "It happened at the other side, and nothing here knows of it.",
    News.UNREADABLE: "The other side has sent a signed message that cannot be read.",
}


class Outcome(enum.StrEnum):
    """What is known about one send, or a series of sends, of an outside call."""

    SUCCESS = "success"
    FATAL = "fatal"
    """A repeat is pointless."""
    TRANSIENT = "transient"
    """Certainly not executed: a repeat is always allowed."""
    AMBIGUOUS = "ambiguous"
    """May have been executed: a repeat is allowed only under the same downstream key."""


class Ending(enum.StrEnum):
    """How one sender's series of sends ended, as the journal records it. NULL in the database means: still open."""

    APPLIED = "applied"
    REJECTED = "rejected"
    """The other side's business refusal."""
    NOT_APPLIED = "not_applied"
    """Stated by the other side: not executed."""
    ABSENT = "absent"
    """Not found by a look-up that was late enough to be believed (R36)."""
    NOT_SENT = "not_sent"
    """No byte of the request left."""
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Known:
    """What a host knows of a key and the ledger does not: shown to staff beside it."""

    owner: str = ""
    """Who the caller is, e.g. `Merchant A, user merchant-a`."""
    since: str = ""
    """What became of it after it was settled, e.g. `refunded 12.00 UAH of 12.00 UAH`."""
    undecided: bool = False
    """The other side has taken it on and may still refuse it."""
    undone: bool = False
    """It was taken on, and came to nothing afterwards, e.g. the other side refused it in the end."""
    counts: bool = True
    """It counts as done for its reference. Not so what was undone, e.g. refunded, nor what may be done several times
    for one reference, e.g. refunds of parts."""
    label: str = ""
    """What the host's own row of it is called, e.g. `payment 0198…`."""
    address: str = ""
    """Where that row is shown."""


@dataclass(frozen=True, slots=True)
class Downstream:
    """What the other side of an outside call promises, as its owner declares it."""

    name: str
    keyed: bool
    """It honours our downstream key: a repeat under the same key is the same operation."""
    settling_time: float
    """Seconds after which a send that was going to be applied can be found by a look-up."""
    key_memory: float
    """Seconds for which it remembers a downstream key; a later resend would be a new operation."""


@dataclass(frozen=True, slots=True)
class OutsideRequest:
    """What is sent outside, frozen: every send of a step sends these bytes under this key."""

    downstream_key: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class OutsideResult:
    """What came back from an outside call that was applied.

    `record` is JSON that a resumed run gets back instead of calling again; `reference` is the other side's id.
    """

    reference: str
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OpenStep:
    """An outside call whose outcome is asked for: what a look-up is given."""

    key_id: uuid.UUID
    operation: str
    name: str
    downstream_key: str
    payload: bytes
    reference: str
    """The other side's id, where it is known."""
    first_send_at: datetime


@dataclass(frozen=True, slots=True)
class Applied:
    """A look-up's answer: it happened."""

    result: OutsideResult
    again: tuple[str, ...] = ()
    """The other side's ids of further times that it happened: a person is called for each."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A look-up's answer: the other side knows it and refused it for good."""

    detail: str
    code: str
    result: OutsideResult


@dataclass(frozen=True, slots=True)
class Absent:
    """A look-up's answer: the other side does not know it. What that proves is for the ledger to decide (R36)."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A look-up's answer: the other side knows it and has not decided."""


LookUp = Applied | Rejected | Absent | Pending


@dataclass(frozen=True, slots=True)
class CallReport:
    """What the guard saw of one call: a series of attempts."""

    attempts: int
    """Attempts begun, the first included."""
    seconds: float
    outcome: Outcome
    """Of the whole series: one ambiguous send makes it ambiguous unless a later one succeeded."""
    last_error: str = ""
    """Class and message of the last error, without secrets."""
    sent: bool = False
    """Whether a byte of any attempt may have left."""
    retry_after: float | None = None
    """The other side's last valid word, in seconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as the ledger keeps it. `body` is None where the work is done but its answer could not be kept."""

    status: int
    body: bytes | None
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    """Why there is no body: `too-large`, `streaming`, `unrenderable`."""
