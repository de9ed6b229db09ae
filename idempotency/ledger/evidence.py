"""A key and its journal at one moment, and what "not found" proves of it (R36).

# Note [Qualified look-ups]
"Not found" proves nothing by itself: the send may still be on its way. Absence is believed for a sender that ended only
if the look-up began after that end plus the other side's settling time. For a sender that never ended it is believed
if its process was proven dead, or could send no more, that long before; where the other side honours keys, a later
arrival would be the same operation, and where it does not, only a proven death counts.
All these moments are read from the database's clock, the look-up's beginning included.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from idempotency.ledger.values import Identity
from idempotency.types import Ending, OpenStep, OutsideResult, State


@dataclass(frozen=True, slots=True)
class SenderView:
    """One sender of a step, as a look-up finds it."""

    id: int
    ending: Ending | None
    ended_at: datetime | None
    send_before: datetime
    dead_at: datetime | None
    evidence: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the journal, as a look-up finds it."""

    id: int
    name: str
    keyed: bool
    settling: timedelta
    result: OutsideResult | None
    open_step: OpenStep
    senders: tuple[SenderView, ...]

    @property
    def is_open(self) -> bool:
        """Whether it may have been applied, or may yet be."""
        return self.result is None and any(
            s.ending in (None, Ending.AMBIGUOUS) for s in self.senders
        )

    @property
    def was_rejected(self) -> bool:
        """Whether the other side's last word on it was a business refusal."""
        return self.result is None and self.senders[-1].ending is Ending.REJECTED

    def absence_counts(self, *, looked_at: datetime) -> "Absence":
        """Judge what "not found" proves, for a look-up that began at that moment."""
        proven, tolerated = [], False
        wait_until: datetime | None = None
        for sender in self.senders:
            since = _quiet_since(sender, keyed=self.keyed)
            if since is None:
                return Absence(needs_person=True)
            if since + self.settling > looked_at:
                wait_until = max(wait_until or looked_at, since + self.settling)
            elif sender.ending is Ending.AMBIGUOUS or sender.dead_at is not None:
                proven.append(sender.id)
            elif sender.ending is None:
                tolerated = True
        return Absence(tuple(proven), tolerated, wait_until)


@dataclass(frozen=True, slots=True)
class Absence:
    """What "not found" proves of a step."""

    proven: tuple[int, ...] = ()
    """Senders that certainly did nothing, and will do nothing."""
    tolerated: bool = False
    """Another one may still send, under the same downstream key: the key stays watched."""
    wait_until: datetime | None = None
    """Not None: nothing is proven before that moment."""
    needs_person: bool = False
    """A sender that may still send, to another side that honours no keys."""


def _quiet_since(sender: SenderView, *, keyed: bool) -> datetime | None:
    """Return since when the sender sends nothing; None where that cannot be said."""
    if sender.ended_at is not None:
        return sender.ended_at
    if sender.dead_at is not None:
        return sender.dead_at
    return sender.send_before if keyed else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A key and its journal at one moment: what a look-up is made for, and what its settlement is compared with."""

    id: uuid.UUID
    identity: Identity
    state: State
    token: int
    generation: int
    journal_version: int
    deferred: bool
    watched: bool
    accepted: str
    traceparent: str
    lookups: int
    unknown_for: float
    """Seconds."""
    looked_at: datetime
    steps: tuple[StepView, ...]

    @property
    def is_open(self) -> bool:
        """Whether any step may have been applied, or may yet be."""
        return any(step.is_open for step in self.steps)
