"""Claiming a key: one atomic statement decides who runs, and everybody else learns why not (R8, R9).

# Note [Claim]
The row is read as the statement's snapshot sees it. Only where there is none does `idempotency_take` try the identity's
advisory lock, which a claim holds until its transaction ends, so that nobody ever waits for another's handler. What was
committed after the snapshot, by whoever held the lock before, the function sees with a snapshot of its own.

    a row                somebody's key: expiry, fingerprint and state decide
    no row, took NULL    the lock is a twin's, whose claim is not committed yet
    no row, took true    claimed; the row is written later, see Note [Draft]
    no row, took false   committed after the snapshot: ask again

# Note [Isolation]
A host may have chosen a stricter isolation than READ COMMITTED for its handlers. There the whole transaction has the
claim's snapshot, the function's second look too. So the row is written with the claim: PostgreSQL refuses that where a
row was committed after the snapshot, and it is asked again in a new transaction, before anything has run (R8).
"""

import uuid
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError

from idempotency.conf import conf
from idempotency.exceptions import LedgerUnavailable
from idempotency.ledger import draft as drafts
from idempotency.ledger.draft import Draft, Origin, fingerprint_parameters
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Fingerprint, Identity, InProgress, Refusal, Replay
from idempotency.ledger.verdict import Claimable, found_in, judge
from idempotency.models.fields import uuid7
from idempotency.resilience import is_conflict

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
    draft: Draft | None = None
    """The row, where it may not be written yet."""
    written: bool = False
    """Whether the claim itself has written it."""


Acquired = Won | Replay | Refusal
_NOWHERE = Origin()


def acquire(
    *, phases: Phases, identity: Identity, fingerprint: Fingerprint, origin: Origin = _NOWHERE
) -> Acquired:
    """Claim the key in the open phase, or say what stands in the way.

    Raises:
        LedgerUnavailable: the row kept moving under every look at it.
    """
    for _ in range(_RACES):
        try:
            found = _ask(phases, identity, fingerprint, origin)
        except OperationalError as error:
            if not is_conflict(error):
                raise
            # Its snapshot was older than what it met: Note [Isolation].
            phases.roll_back()
            phases.open()
            continue
        if found is not None:
            return found
    raise LedgerUnavailable("The key changed under every attempt to claim it.")


def _ask(
    phases: Phases, identity: Identity, fingerprint: Fingerprint, origin: Origin
) -> Acquired | None:
    """Claim the key, or say what stands in the way; None where it has to be asked again."""
    row = _claim(phases, identity)
    if row["took"]:
        return _taken(phases, Draft(uuid7(), identity, fingerprint, origin, row["began"]), row)
    if row["id"] is None:
        return InProgress(retry_after=1) if row["took"] is None else None
    answer = judge(row, fingerprint)
    if not isinstance(answer, Claimable):
        return answer
    won = _claim_again(phases, identity, row, fingerprint, origin, answer)
    if won is None and _still(phases, row):
        return InProgress(retry_after=1, found=found_in(row))
    return won


def made_up(*, identity: Identity, fingerprint: Fingerprint, origin: Origin) -> Won:
    """Claim a key that this process has made up, and that nobody else can have: without asking the database."""
    return _drafted(Draft(uuid7(), identity, fingerprint, origin))


def _taken(phases: Phases, draft: Draft, row: dict[str, Any]) -> Won | None:
    if row["isolation"] == "read committed":
        return _drafted(draft)
    return _drafted(draft, written=True) if drafts.write(phases=phases, draft=draft) else None


def _drafted(draft: Draft, *, written: bool = False) -> Won:
    return Won(
        draft.id, draft.identity, token=1, generation=1, fresh=True, draft=draft, written=written
    )


# -- the statement ---------------------------------------------------------------------------------------------------

_COLUMNS = (
    "id, state, token, generation, deferred, fingerprint, fingerprint_parts, fingerprint_version, "
    "fingerprint_secret, status, body, content_type, headers, note, resource, watched, unfinished, journal_version"
)
_NAMES = (
    *_COLUMNS.split(", "),
    "settled_for",
    "lease_left",
    "seconds",
    "began",
    "took",
    "isolation",
    "idle",
)

# Times are seconds, so that no time zone of the process has a part in them.
_CLAIM = f"""
SELECT {_COLUMNS},
    date_part('epoch', clock_timestamp() - settled_at) AS settled_for,
    date_part('epoch', lease_until - clock_timestamp()) AS lease_left,
    date_part('epoch', COALESCE(lease_until, due_at, next_lookup_at) - clock_timestamp()) AS seconds,
    date_part('epoch', clock_timestamp()) AS began,
    CASE WHEN id IS NULL THEN idempotency_take(%(lock)s, %(key)s, %(scope)s, %(operation)s) END AS took,
    current_setting('transaction_isolation') AS isolation,
    set_config('idle_in_transaction_session_timeout', %(idle)s, true) AS idle
FROM (VALUES (1)) AS one LEFT JOIN idempotency_key
    ON key = %(key)s AND scope = %(scope)s AND operation = %(operation)s
"""


def _claim(phases: Phases, identity: Identity) -> dict[str, Any]:
    parameters: dict[str, str | int] = {
        "scope": identity.scope,
        "operation": identity.operation,
        "key": identity.key,
        "lock": identity.lock_number(),
        "idle": phases.idle_limit,
    }
    with phases.connection.cursor() as cursor:
        cursor.execute(_CLAIM, parameters)
        return dict(zip(_NAMES, cursor.fetchone(), strict=True))


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
    parameters = row | {"lease": conf.LEASE, "key_ttl": conf.KEY_TTL}
    if how.new_generation:
        parameters |= fingerprint_parameters(fingerprint) | origin.parameters()
    with phases.connection.cursor() as cursor:
        cursor.execute(_NEW_GENERATION if how.new_generation else _CLAIM_AGAIN, parameters)
        won = cursor.fetchone()
        if won is None:
            return None
        if how.new_generation and row["deferred"]:
            # The work of the life that has ended, so that the new one can have its own.
            cursor.execute("DELETE FROM idempotency_operation WHERE key_id = %(id)s", row)
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


def _still(phases: Phases, row: dict[str, Any]) -> bool:
    """Whether the row is as it was, so that only its lock stood in the way: another claim of it is under way."""
    with phases.connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM idempotency_key WHERE id = %(id)s AND token = %(token)s AND state = %(state)s "
            "AND journal_version = %(journal_version)s",
            row,
        )
        return cursor.fetchone() is not None
