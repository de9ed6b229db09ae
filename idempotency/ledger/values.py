"""What a claim may find: one value per answer of the pipeline, matched exhaustively by it (R9)."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from idempotency.ledger import storable
from idempotency.types import Answer, State


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a key one key (R6)."""

    scope: str
    operation: str
    key: str

    def lock_number(self) -> int:
        """Return the advisory lock of this identity: a signed 64-bit number over length-prefixed parts."""
        digest = hashlib.blake2b(digest_size=8, person=b"idempotency")
        for part in (self.scope, self.operation, self.key):
            raw = part.encode()
            digest.update(len(raw).to_bytes(4, "big") + raw)
        return int.from_bytes(digest.digest(), "big", signed=True)


class Fingerprint(Protocol):
    """What the ledger needs to know of a request's fingerprint (R7)."""

    @property
    def current(self) -> tuple[int, str, bytes]:
        """(version, secret name, digest) under the secret in force."""

    def parts(self) -> bytes:
        """Return short digests of each part, to say later which of them differ."""

    def matches(self, *, version: int, secret_name: str, digest: bytes) -> bool:
        """Whether this request is the one that the row was claimed for, under the row's own secret."""

    def differing(self, parts: bytes, *, version: int, secret_name: str) -> list[str]:
        """Return the names of the parts that differ from a row's, under the row's own secret."""


@dataclass(frozen=True, slots=True)
class Found:
    """A key as it stood when somebody else's claim was met."""

    id: uuid.UUID
    state: State
    token: int
    deferred: bool
    resource: str
    retry_after: float
    """Seconds: the rest of the lease, the time to the next look-up, or 1."""


@dataclass(frozen=True, slots=True)
class Replay:
    """It is done: the first answer again."""

    found: Found
    answer: Answer


@dataclass(frozen=True, slots=True)
class InProgress:
    """The first request is still running (R10). `found` is None while its claim is not committed yet."""

    retry_after: float
    found: Found | None = None


@dataclass(frozen=True, slots=True)
class StillUnknown:
    """Nobody knows yet."""

    found: Found


@dataclass(frozen=True, slots=True)
class Reused:
    """Another request stands under this key."""

    found: Found
    differing: list[str]


@dataclass(frozen=True, slots=True)
class ResultExpired:
    """It was settled so long ago that the answer is gone (R20)."""

    found: Found


@dataclass(frozen=True, slots=True)
class ResultUnavailable:
    """It is done, but its answer could not be kept (R17)."""

    found: Found
    note: str


Refusal = InProgress | StillUnknown | Reused | ResultExpired | ResultUnavailable


@dataclass(frozen=True, slots=True)
class About:
    """What a key is about, for the caller and for people; what is empty changes nothing."""

    resource: str = ""
    reference: str = ""
    summary: str = ""

    def parameters(self) -> dict[str, str]:
        """Return them as they fit their columns."""
        return {
            "resource": storable.text(self.resource)[:200],
            "reference": storable.text(self.reference)[:200],
            "summary": storable.text(self.summary)[:200],
        }


NOTHING_NEW = About()
SET_ABOUT = """
    resource = COALESCE(NULLIF(%(resource)s, ''), k.resource),
    reference = COALESCE(NULLIF(%(reference)s, ''), k.reference),
    summary = COALESCE(NULLIF(%(summary)s, ''), k.summary)
"""
"""The assignments that write an `About` together with whatever else changes on the key, called `k`."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is written when a key is settled: by whom, and on which evidence (R37)."""

    by: str
    evidence: Mapping[str, object] = field(default_factory=dict)
