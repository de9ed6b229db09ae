"""The rows of deferred work: what was promised, and what came of it. Their state and due date are their key's."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.ledger import sealing, storable
from idempotency.ledger.values import Identity
from idempotency.models.fields import uuid7
from idempotency.types import State

# -- promised ----------------------------------------------------------------------------------------------------------


def add(
    *,
    connection: BaseDatabaseWrapper,
    id: uuid.UUID,  # noqa: A002 - the column
    key_id: uuid.UUID,
    name: str,
    payload: str,
    max_attempts: int,
) -> uuid.UUID:
    """Write the deferred work of a key, or find it: a resumed run does not make it again. Return its id."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_operation (
                id, key_id, name, input, attempts, cycle_attempts, max_attempts, last_error)
            VALUES (%(id)s, %(key)s, %(name)s, %(input)s, 0, 0, %(max)s, '')
            ON CONFLICT (key_id) DO UPDATE SET name = idempotency_operation.name
            RETURNING id
            """,
            {
                "id": id,
                "key": key_id,
                "name": name,
                "input": sealing.seal_json(payload),
                "max": max_attempts,
            },
        )
        found: uuid.UUID = cursor.fetchone()[0]
    return found


def mint(
    *,
    connection: BaseDatabaseWrapper,
    id: uuid.UUID,  # noqa: A002 - the column
    identity: Identity,
    digest: bytes,
    payload: str,
    max_attempts: int,
    delay: float,
) -> tuple[uuid.UUID, uuid.UUID] | None:
    """Write a key that nobody sent, with its deferred work; find both where they are written already.

    Args:
        digest: of the work's input.

    Returns: the ids of key and operation, or None where the key stands for other work.
    """
    parameters: dict[str, Any] = {
        "key_id": uuid7(),
        "scope": identity.scope,
        "operation": identity.operation,
        "key": identity.key,
        "digest": digest,
        "id": id,
        "input": sealing.seal_json(payload),
        "max": max_attempts,
        "delay": delay,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MINT, parameters)
        row = cursor.fetchone()
        if row is None:
            cursor.execute(
                "SELECT k.id, o.id FROM idempotency_key k JOIN idempotency_operation o ON o.key_id = k.id "
                "WHERE k.key = %(key)s AND k.scope = %(scope)s AND k.operation = %(operation)s "
                "AND k.fingerprint = %(digest)s",
                parameters,
            )
            row = cursor.fetchone()
    return (row[0], row[1]) if row else None


_MINT = """
WITH k AS (
    INSERT INTO idempotency_key (
        id, scope, operation, key, generation, fingerprint, fingerprint_parts, fingerprint_version,
        fingerprint_secret, accepted, request_id, traceparent, state, token, due_at, deferred, call_begun,
        journal_version, status, content_type, headers, note, settled_by, evidence, unfinished, watched, lookups,
        needs_person_reason, resource, reference, summary)
    VALUES (%(key_id)s, %(scope)s, %(operation)s, %(key)s, 1, %(digest)s, '', 0,
        '', '', '', '', 'in_progress', 1, clock_timestamp() + %(delay)s * interval '1 second', true, false,
        0, 202, '', '{}', 'minted', '', '{}', false, false, 0,
        '', '', '', '')
    ON CONFLICT ON CONSTRAINT idempotency_key_identity DO NOTHING
    RETURNING id
)
INSERT INTO idempotency_operation (id, key_id, name, input, attempts, cycle_attempts, max_attempts, last_error)
SELECT %(id)s, k.id, %(operation)s, %(input)s, 0, 0, %(max)s, '' FROM k
RETURNING key_id, id
"""


# -- what came of it ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How work ends: with a result, as JSON text, or with an error for its caller."""

    result: str | None = None
    error: Mapping[str, str] | None = None
    last_error: str = ""
    """The last one met, for staff."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of `SET_CONCLUSION`."""
        return {
            "result": None if self.result is None else sealing.seal_json(self.result),
            "error": None if self.error is None else storable.as_json(self.error),
            "last_error": storable.text(self.last_error)[:500],
        }


SET_CONCLUSION = """
    result = COALESCE(%(result)s::jsonb, o.result), error = COALESCE(%(error)s::jsonb, o.error),
    last_error = COALESCE(NULLIF(%(last_error)s::text, ''), o.last_error), updated_at = clock_timestamp()
"""


def record(*, connection: BaseDatabaseWrapper, id: uuid.UUID, ended: Conclusion) -> None:  # noqa: A002
    """Write how work ended that no run ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE idempotency_operation AS o SET {SET_CONCLUSION} WHERE o.id = %(id)s",
            ended.parameters() | {"id": id},
        )


def record_try(
    *,
    connection: BaseDatabaseWrapper,
    id: uuid.UUID,  # noqa: A002
    last_error: str,
    give_back: bool = False,
    new_cycle: bool = False,
) -> None:
    """Write why a run ended without ending the work.

    Args:
        give_back: the run was refused before it began anything: its attempt does not count.
        new_cycle: the run was stopped in good order: counting towards the limit begins again.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_operation SET last_error = %(error)s, attempts = attempts - %(back)s, "
            "cycle_attempts = CASE WHEN %(new)s THEN 0 ELSE cycle_attempts - %(back)s END, "
            "updated_at = clock_timestamp() WHERE id = %(id)s",
            {
                "error": storable.text(last_error)[:500],
                "back": int(give_back),
                "new": new_cycle,
                "id": id,
            },
        )


# -- as its caller sees it ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """Deferred work with its key, at one moment."""

    id: uuid.UUID
    key_id: uuid.UUID
    identity: Identity
    generation: int
    state: State
    """A lease that has run out reads as unknown, whether or not the reconciler has been there yet."""
    name: str
    attempts: int
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None
    next_in: float | None
    """Seconds until something can be new: the next run, the next look-up."""
    result: Any
    has_result: bool
    error: Mapping[str, str] | None


def view(
    *,
    connection: BaseDatabaseWrapper,
    id: uuid.UUID,  # noqa: A002
    scope: str,
) -> View | None:
    """Return an operation of that scope; None for anybody else's."""
    with connection.cursor() as cursor:
        cursor.execute(_VIEW, {"id": id, "scope": scope})
        row = cursor.fetchone()
    if row is None:
        return None
    key_id, key_scope, operation, key, generation, state, *rest = row
    name, attempts, created, updated, due_at, next_in, result, error = rest
    return View(
        id=id,
        key_id=key_id,
        identity=Identity(scope=key_scope, operation=operation, key=key),
        generation=generation,
        state=State(state),
        name=name,
        attempts=attempts,
        created_at=created,
        updated_at=updated,
        due_at=due_at,
        next_in=None if next_in is None else float(next_in),
        result=None if result is None else sealing.unseal_json(json.loads(result)),
        has_result=result is not None,
        error=None if error is None else json.loads(error),
    )


_VIEW = """
SELECT k.id, k.scope, k.operation, k.key, k.generation,
    CASE WHEN k.state = 'in_progress' AND k.lease_until <= clock_timestamp() THEN 'unknown' ELSE k.state END,
    o.name, o.attempts, o.created_at, GREATEST(o.updated_at, k.claimed_at, k.unknown_since, k.settled_at), k.due_at,
    EXTRACT(epoch FROM COALESCE(k.due_at, k.next_lookup_at) - clock_timestamp()), o.result::text, o.error::text
FROM idempotency_operation o JOIN idempotency_key k ON k.id = o.key_id
WHERE o.id = %(id)s AND k.scope = %(scope)s
"""
