"""A claim that is not written yet: its row comes with the first statement that has something to keep (R8).

# Note [Draft]
A claim of a new identity holds the advisory lock, and that is all: its row is inserted with the answer, with the first
outside call, or with deferred work, whichever comes first. So a local handler costs one insert and no update, and a run
that kept nothing leaves nothing. Who inserts is decided by the unique constraint; the lock spares twins the work.

A row that this claim has not written is inserted, or gives way to whoever has the identity. One that it has written
(`require_key`) may be there or not until its first commit: a handler's own savepoint can have undone it. Therefore
every statement after that is an upsert, whose UPDATE is fenced like any other.
"""

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.conf import conf
from idempotency.ledger import storable
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import About, Fingerprint, Identity, Settlement
from idempotency.ledger.writing import announce, answer_parameters, settled_parameters
from idempotency.types import Answer


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a claim comes from: kept with the key for people and for rendering the answer later."""

    accepted: str = ""
    request_id: str = ""
    traceparent: str = ""

    def parameters(self) -> dict[str, str]:
        """Return them as they fit their columns."""
        return {
            "accepted": storable.text(self.accepted)[:100],
            "request_id": storable.text(self.request_id)[:100],
            "traceparent": storable.text(self.traceparent)[:55],
        }


@dataclass(frozen=True, slots=True)
class Draft:
    """The row to be."""

    id: uuid.UUID
    identity: Identity
    fingerprint: Fingerprint
    origin: Origin = field(default_factory=Origin)
    began: float | None = None
    """The database's time of the claim, in seconds since 1970; None where it was not asked."""

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
_BEGAN = "COALESCE(to_timestamp(%(began)s), clock_timestamp())"
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


INSERT_COMPLETED = f"""
INSERT INTO idempotency_key AS k ({COLUMNS}, state, call_begun, journal_version, status, body, content_type,
    headers, note, resource, reference, summary, settled_at, settled_by, evidence)
VALUES ({VALUES}, 'completed', false, 0, %(status)s, %(body)s, %(content_type)s,
    %(headers)s, %(note)s, %(resource)s, %(reference)s, %(summary)s, clock_timestamp(), %(by)s, %(evidence)s)
"""

_COMPLETE = f"""
{INSERT_COMPLETED} {CONFLICT} DO NOTHING
RETURNING date_part('epoch', k.settled_at - k.created_at)
"""


def complete(
    *,
    connection: BaseDatabaseWrapper,
    draft: Draft,
    answer: Answer,
    settlement: Settlement,
    about: About,
) -> bool:
    """Insert the row with its answer, as settled; return whether it was free."""
    parameters = (
        answer_parameters(answer)
        | about.parameters()
        | settled_parameters(draft.id, 1, settlement)
        | draft.parameters()
    )
    with connection.cursor() as cursor:
        cursor.execute(_COMPLETE, parameters)
        row = cursor.fetchone()
    if row is None:
        return False
    identity, request_id = draft.identity, parameters["request_id"]
    told = (draft.id, identity.operation, "completed", identity.key, request_id, False, row[0], "")
    announce(connection, told, by=settlement.by)
    return True


def fingerprint_parameters(fingerprint: Fingerprint) -> dict[str, Any]:
    """Return what a row stores of a fingerprint."""
    version, secret, digest = fingerprint.current
    return {"version": version, "secret": secret, "digest": digest, "parts": fingerprint.parts()}
