"""Claiming a key: one atomic statement decides who runs, and everybody else learns why not (R8, R9).

# Note [Claim]
`k` is the row as this statement's snapshot sees it. Only where there is none does `l` try the identity's advisory lock,
which a claim holds until its transaction ends, and only the holder inserts, so that nobody ever waits for another's
handler. The unique constraint decides all the same: the lock only spares the wait.

    row in c                  claimed
    row in k                  somebody's key: expiry, fingerprint and state decide
    neither, lock refused     a twin's claim that is not committed yet
    neither, lock taken       committed after the snapshot: ask again
"""

import uuid
from dataclasses import dataclass
from typing import Any

from idempotency.conf import conf
from idempotency.exceptions import LedgerUnavailable
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Fingerprint, Identity, InProgress, Refusal, Replay
from idempotency.ledger.verdict import Claimable, found_in, judge
from idempotency.models.fields import uuid7

_RACES = 5
"""A snapshot can be raced once per settlement of another claimant; more in a row is a broken database."""


@dataclass(frozen=True, slots=True)
class Won:
    """This process owns the key in the open phase."""

    id: uuid.UUID
    identity: Identity
    token: int
    generation: int
    fresh: bool
    """No journal can exist: this generation was begun by this very claim."""
    resumed: bool = False
    """An earlier run was applied in part: this one is to finish it."""
    resource: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a claim comes from: kept with the key for people and for rendering the answer later."""

    accepted: str = ""
    request_id: str = ""
    traceparent: str = ""


Acquired = Won | Replay | Refusal


def acquire(
    *, phases: Phases, identity: Identity, fingerprint: Fingerprint, origin: Origin = Origin()
) -> Acquired:
    """Claim the key in the open phase, or say what stands in the way.

    Raises:
        LedgerUnavailable: the row kept moving under every look at it.
    """
    for _ in range(_RACES):
        row = _claim(phases, identity, fingerprint, origin)
        if row["claimed"]:
            return Won(row["new_id"], identity, token=1, generation=1, fresh=True)
        if row["id"] is None:
            if not row["locked"]:
                return InProgress(retry_after=1)
            continue
        answer = judge(row, fingerprint)
        if not isinstance(answer, Claimable):
            return answer
        won = _claim_again(phases, identity, row, fingerprint, origin, answer)
        if won is not None:
            return won
        if _still(phases, row):
            return InProgress(retry_after=1, found=found_in(row))
    raise LedgerUnavailable("The key changed under every attempt to claim it.")


# -- the statement ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    "id, state, token, generation, deferred, fingerprint, fingerprint_parts, fingerprint_version, "
    "fingerprint_secret, status, body, content_type, headers, note, resource, unfinished, journal_version, "
    "settled_at"
)

_CLAIM = f"""
WITH k AS MATERIALIZED (
    SELECT {_COLUMNS},
           NOT watched AND settled_at + %(key_ttl)s * interval '1 second' <= clock_timestamp() AS expired,
           settled_at + %(result_ttl)s * interval '1 second' <= clock_timestamp() AS result_expired,
           lease_until <= clock_timestamp() AS lapsed,
           EXTRACT(epoch FROM COALESCE(lease_until, due_at, next_lookup_at) - clock_timestamp()) AS seconds
    FROM idempotency_key WHERE key = %(key)s AND scope = %(scope)s AND operation = %(operation)s
), l AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(%(lock)s) AS locked WHERE NOT EXISTS (SELECT FROM k)
), c AS (
    INSERT INTO idempotency_key (
        id, scope, operation, key, generation, fingerprint, fingerprint_parts, fingerprint_version,
        fingerprint_secret, accepted, request_id, traceparent, state, token, lease_until, deferred, call_begun,
        journal_version, headers, note, settled_by, evidence, unfinished, watched, lookups,
        needs_person_reason, resource, reference, summary)
    SELECT %(new_id)s, %(scope)s, %(operation)s, %(key)s, 1, %(digest)s, %(parts)s, %(version)s,
        %(secret)s, %(accepted)s, %(request_id)s, %(traceparent)s, 'in_progress', 1,
        clock_timestamp() + %(lease)s * interval '1 second', false, false,
        0, '{{}}', '', '', '{{}}', false, false, 0,
        '', '', '', ''
    FROM l WHERE locked
    ON CONFLICT ON CONSTRAINT idempotency_key_identity DO NOTHING
    RETURNING id
)
SELECT k.*, (SELECT locked FROM l) AS locked, (SELECT id FROM c) IS NOT NULL AS claimed,
       set_config('idle_in_transaction_session_timeout', %(idle)s, true) AS idle
FROM (SELECT 1) AS one LEFT JOIN k ON true
"""


def _claim(
    phases: Phases, identity: Identity, fingerprint: Fingerprint, origin: Origin
) -> dict[str, Any]:
    parameters = _parameters(identity, fingerprint, origin) | {
        "new_id": uuid7(),
        "idle": phases.idle_limit,
    }
    with phases.connection.cursor() as cursor:
        cursor.execute(_CLAIM, parameters)
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True), new_id=parameters["new_id"])


def _parameters(identity: Identity, fingerprint: Fingerprint, origin: Origin) -> dict[str, Any]:
    version, secret, digest = fingerprint.current
    return {
        "scope": identity.scope,
        "operation": identity.operation,
        "key": identity.key,
        "lock": identity.lock_number(),
        "version": version,
        "secret": secret,
        "digest": digest,
        "parts": fingerprint.parts(),
        "accepted": origin.accepted[:100],
        "request_id": origin.request_id[:100],
        "traceparent": origin.traceparent[:55],
        "lease": conf.LEASE,
        "key_ttl": conf.KEY_TTL,
        "result_ttl": conf.RESULT_TTL,
    }


# -- an existing row that may be claimed again -----------------------------------------------------------------------

_CLAIM_AGAIN = """
WITH free AS MATERIALIZED (
    SELECT id FROM idempotency_key WHERE id = %(id)s AND token = %(token)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE idempotency_key AS k SET
    state = 'in_progress', token = k.token + 1, claimed_at = clock_timestamp(), due_at = NULL,
    lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    settled_at = NULL, settled_by = '', unknown_since = NULL, unfinished = false, lookups = 0,
    next_lookup_at = CASE WHEN k.watched THEN k.next_lookup_at END
FROM free WHERE k.id = free.id AND k.token = %(token)s AND k.state = %(state)s
    AND k.journal_version = %(journal_version)s
RETURNING k.token, k.generation
"""

_NEW_GENERATION = """
WITH free AS MATERIALIZED (
    SELECT id FROM idempotency_key WHERE id = %(id)s AND token = %(token)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE idempotency_key AS k SET
    state = 'in_progress', token = k.token + 1, generation = k.generation + 1, claimed_at = clock_timestamp(),
    created_at = clock_timestamp(), lease_until = clock_timestamp() + %(lease)s * interval '1 second', due_at = NULL,
    fingerprint = %(digest)s, fingerprint_parts = %(parts)s, fingerprint_version = %(version)s,
    fingerprint_secret = %(secret)s, accepted = %(accepted)s, request_id = %(request_id)s,
    traceparent = %(traceparent)s, deferred = false, call_begun = false, status = NULL, body = NULL,
    content_type = NULL, headers = '{}', note = '', settled_at = NULL, settled_by = '', evidence = '{}',
    unknown_since = NULL, unfinished = false, next_lookup_at = NULL, lookups = 0,
    needs_person_since = NULL, needs_person_reason = '', resource = '', reference = '', summary = ''
FROM free WHERE k.id = free.id AND k.token = %(token)s AND NOT k.watched
    AND k.settled_at + %(key_ttl)s * interval '1 second' <= clock_timestamp()
RETURNING k.token, k.generation
"""


def _claim_again(
    phases: Phases,
    identity: Identity,
    row: dict[str, Any],
    fingerprint: Fingerprint,
    origin: Origin,
    how: Claimable,
) -> Won | None:
    parameters = _parameters(identity, fingerprint, origin) | row
    with phases.connection.cursor() as cursor:
        if how.new_generation:
            _forget_work(cursor, row)
        cursor.execute(_NEW_GENERATION if how.new_generation else _CLAIM_AGAIN, parameters)
        won = cursor.fetchone()
    if won is None:
        return None
    token, generation = won
    return Won(
        id=row["id"],
        identity=identity,
        token=token,
        generation=generation,
        fresh=how.new_generation,
        resumed=row["unfinished"] and not how.new_generation,
        resource="" if how.new_generation else row["resource"],
    )


def _forget_work(cursor: Any, row: dict[str, Any]) -> None:
    """Delete the deferred work of the life that has ended, so that the new one can have its own."""
    if row["deferred"]:
        cursor.execute(
            "DELETE FROM idempotency_operation AS o USING idempotency_key AS k "
            "WHERE o.key_id = k.id AND k.id = %(id)s AND k.token = %(token)s AND k.settled_at IS NOT NULL",
            row,
        )


def _still(phases: Phases, row: dict[str, Any]) -> bool:
    """Whether the row is as it was, so that only its lock stood in the way: another claim of it is under way."""
    with phases.connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM idempotency_key WHERE id = %(id)s AND token = %(token)s AND state = %(state)s "
            "AND journal_version = %(journal_version)s",
            row,
        )
        return cursor.fetchone() is not None
