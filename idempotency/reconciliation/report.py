"""What a reconciliation says of itself."""

import uuid
from dataclasses import dataclass

from idempotency.exceptions import IdempotencyError
from idempotency.types import State


@dataclass(frozen=True, slots=True)
class Report:
    """What one reconciliation of one key came to."""

    key_id: uuid.UUID
    decision: str
    """`applied`, `rejected`, `not-applied`, `not-yet`, `pending`, `unreachable`, `needs-person`, `moved`, `settled`,
    `under-way`, `unfinished` (some steps happened, others did not, and the work is not done)."""
    state: State | None
    detail: str = ""
    watched: bool = False
    """It was settled while a send of it could still arrive: what did not happen may happen yet."""


class Refused(IdempotencyError):
    """A person may not settle this key so, now; the message says why."""
