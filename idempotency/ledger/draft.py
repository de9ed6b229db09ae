"""A claim that is not written yet: its row comes with the first statement that has something to keep (R8).

# Note [Draft]
A claim of a new identity holds the advisory lock, and that is all: its row is inserted with the answer, with the first
outside call, or with deferred work, whichever comes first. So a local handler costs one insert and no update, and a run
that kept nothing leaves nothing. Who inserts is decided by the unique constraint; the lock spares twins the work.

Until the claim's first commit the row may be there or not: a handler's own savepoint can have undone it. Therefore
every statement that may be the first is an upsert whose UPDATE is fenced like any other.
"""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from idempotency.conf import conf
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Fingerprint, Identity


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a claim comes from: kept with the key for people and for rendering the answer later."""

    accepted: str = ""
    request_id: str = ""
    traceparent: str = ""

    def parameters(self) -> dict[str, str]:
        """Return them as they fit their columns."""
        return {
            "accepted": self.accepted[:100],
            "request_id": self.request_id[:100],
            "traceparent": self.traceparent[:55],
        }


@dataclass(frozen=True, slots=True)
class Draft:
    """The row to be."""

    id: uuid.UUID
    identity: Identity
    fingerprint: Fingerprint
    origin: Origin = field(default_factory=Origin)
    began: datetime | None = None
    """The database's time of the claim; None where the database was not asked."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `VALUES` and `LEASE_END`."""
        return {
            "id": self.id,
            "scope": self.identity.scope,
            "operation": self.identity.operation,
            "key": self.identity.key,
            "began": self.began,
            "lease": conf.LEASE,
            **fingerprint_parameters(self.fingerprint),
            **self.origin.parameters(),
        }


COLUMNS = (
    "id, scope, operation, key, generation, fingerprint, fingerprint_parts, fingerprint_version, fingerprint_secret, "
    "accepted, request_id, traceparent, created_at, claimed_at, token, deferred, unfinished, watched, lookups, "
    "needs_person_reason"
)
_BEGAN = "COALESCE(%(began)s::timestamptz, clock_timestamp())"
VALUES = (
    "%(id)s, %(scope)s, %(operation)s, %(key)s, 1, %(digest)s, %(parts)s, %(version)s, %(secret)s, "
    f"%(accepted)s, %(request_id)s, %(traceparent)s, {_BEGAN}, {_BEGAN}, 1, false, false, false, 0, "
    "''"
)
LEASE_END = f"{_BEGAN} + %(lease)s * interval '1 second'"
CONFLICT = "ON CONFLICT ON CONSTRAINT idempotency_key_identity"

_WRITE = f"""
INSERT INTO idempotency_key ({COLUMNS}, state, lease_until, call_begun, journal_version, headers, note,
    settled_by, evidence, resource, reference, summary)
VALUES ({VALUES}, 'in_progress', {LEASE_END}, false, 0, '{{}}', '', '', '{{}}', '', '', '')
{CONFLICT} DO NOTHING
"""


def write(*, phases: Phases, draft: Draft) -> bool:
    """Insert the row as it stands; return whether it was free."""
    with phases.connection.cursor() as cursor:
        cursor.execute(_WRITE, draft.parameters())
        return bool(cursor.rowcount == 1)


def fingerprint_parameters(fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what a row stores of a fingerprint."""
    version, secret, digest = fingerprint.current
    return {"version": version, "secret": secret, "digest": digest, "parts": fingerprint.parts()}
