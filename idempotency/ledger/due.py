"""Deferred work that waits: who takes it, and how it goes on waiting (R32–R34).

The row is the queue. Each function is one statement that repeats its condition where it writes, so that no two workers
have one row, and a pause between looking and writing changes nothing.

# Note [Due]
`due_at` is compared with `statement_timestamp()`, never `clock_timestamp()`: only a stable function can bound the walk
over the index, and a sweep must not read all that is due tomorrow. The rows to take are chosen in a MATERIALIZED part:
under a nested loop a plain `IN (SELECT … LIMIT n)` would be run, and locked, more than once.
Where the row is known by its id, whether it is due is asked in a form that no index can answer. At rest nothing is due,
by the statistics, and a walk over all that is seems the cheapest way to one row: after a burst it is not.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.ledger import sealing
from idempotency.ledger.endings import APPLIED_STEP, NEEDS_NOBODY, OPEN_STEP
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Identity, Settlement
from idempotency.ledger.writing import TOLD, announce, settled_parameters


@dataclass(frozen=True, slots=True)
class Work:
    """Deferred work as a run of it finds it."""

    key_id: uuid.UUID
    identity: Identity
    token: int
    generation: int
    call_begun: bool
    resource: str
    traceparent: str
    """Of the request that promised it, or ""."""
    id: uuid.UUID
    """The operation's: what its caller knows it by."""
    name: str
    sealed_input: Any
    attempts: int
    cycle_attempts: int
    """Of the present cycle, the one that is being begun included."""
    max_attempts: int

    @property
    def input(self) -> Any:
        """What was promised to be worked on. Raises: Unreadable."""
        return sealing.unseal_json(self.sealed_input)

    @property
    def is_last(self) -> bool:
        """Whether the cycle has no further attempt."""
        return self.cycle_attempts >= self.max_attempts


_DUE = "k.due_at <= statement_timestamp()"
_STILL_DUE = f"COALESCE({_DUE}, false)"
"""The same of a row that is known by its id: Note [Due]."""


def _which(key_id: uuid.UUID | None) -> str:
    return f"k.id = %(id)s AND {_STILL_DUE}" if key_id else _DUE


# Note [Walk the index]
# Ten thousand rows that came at once are in no statistics yet, and a plan made without them reads and sorts them all,
# for each single take: 60 ms instead of 1. Whatever the statistics say, the oldest row is at the head of the index.
_WALK_THE_INDEX = (
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), "
    "set_config('enable_sort', 'off', true), set_config('enable_hashjoin', 'off', true), "
    "set_config('enable_mergejoin', 'off', true)"
)

_WORK = (
    "k.id, k.scope, k.operation, k.key, k.token, k.generation, k.call_begun, k.resource, k.traceparent, "
    "o.id, o.name, o.input, o.attempts, o.cycle_attempts, o.max_attempts"
)


def take(
    *,
    connection: BaseDatabaseWrapper,
    leases: Mapping[str, float],
    key_id: uuid.UUID | None = None,
) -> Work | None:
    """Begin one run: the oldest row that is due gets a lease, a new token and one more attempt, in one statement.

    Args:
        leases: the operations that this process can run now, each with its lease in seconds. Others stay as they are:
            a row that only a newer version of the code knows is nobody's failure.
        key_id: take this key, or none.
    """
    # A named row is at its own place in an index, and not behind all that has been due for longer.
    order = "" if key_id else "ORDER BY k.due_at LIMIT 1"
    with connection.cursor() as cursor:
        if key_id is None:
            cursor.execute(_WALK_THE_INDEX)
        cursor.execute(
            f"""
            WITH able AS (
                SELECT * FROM unnest(%(names)s::text[], %(leases)s::float8[]) AS able(name, lease)
            ), due AS MATERIALIZED (
                SELECT k.id, able.lease
                FROM idempotency_key k JOIN idempotency_operation o ON o.key_id = k.id
                    JOIN able ON able.name = o.name
                WHERE {_which(key_id)} AND o.cycle_attempts < o.max_attempts
                {order} FOR NO KEY UPDATE OF k, o SKIP LOCKED
            ), taken AS (
                UPDATE idempotency_key AS k SET token = k.token + 1, due_at = NULL, claimed_at = clock_timestamp(),
                    lease_until = clock_timestamp() + (SELECT lease FROM due) * interval '1 second'
                WHERE k.id = (SELECT id FROM due) AND k.state = 'in_progress' AND {_STILL_DUE}
                RETURNING k.*
            )
            UPDATE idempotency_operation AS o SET attempts = o.attempts + 1, cycle_attempts = o.cycle_attempts + 1,
                updated_at = clock_timestamp()
            FROM taken AS k WHERE o.key_id = k.id
            RETURNING {_WORK}
            """,
            {
                "names": list(leases),
                "leases": [float(lease) for lease in leases.values()],
                "id": key_id,
            },
        )
        row = cursor.fetchone()
    return _work(row) if row else None


def read_work(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID) -> Work | None:
    """Return a key's deferred work, with the token that the key has now."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_WORK} FROM idempotency_key k JOIN idempotency_operation o ON o.key_id = k.id WHERE k.id = %s",
            [key_id],
        )
        row = cursor.fetchone()
    return _work(row) if row else None


def _work(row: tuple[Any, ...]) -> Work:
    key_id, scope, operation, key, token, generation, call_begun, resource, trace, *work = row
    operation_id, name, given, attempts, cycle, limit = work
    return Work(
        key_id=key_id,
        identity=Identity(scope=scope, operation=operation, key=key),
        token=token,
        generation=generation,
        call_begun=call_begun,
        resource=resource,
        traceparent=trace,
        id=operation_id,
        name=name,
        sealed_input=json.loads(given),
        attempts=attempts,
        cycle_attempts=cycle,
        max_attempts=limit,
    )


def hold(*, phases: Phases, key_id: uuid.UUID, token: int) -> bool:
    """Lock the key for a run's first phase; say whether the run still owns it."""
    with phases.connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, true) FROM idempotency_key "
            "WHERE id = %s AND token = %s AND state = 'in_progress' AND lease_until > clock_timestamp() "
            "FOR NO KEY UPDATE",
            [phases.idle_limit, key_id, token],
        )
        return cursor.fetchone() is not None


def postpone(
    *,
    connection: BaseDatabaseWrapper,
    waits: Mapping[str, float],
    limit: int,
    key_id: uuid.UUID | None = None,
) -> int:
    """Put off work that would be refused if it began now; no attempt is spent. Return how many rows.

    Args:
        waits: seconds by operation; up to half as much again is added at random, so that they come back apart.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH refused AS (
                SELECT * FROM unnest(%(names)s::text[], %(seconds)s::float8[]) AS refused(name, seconds)
            ), due AS MATERIALIZED (
                SELECT k.id, refused.seconds
                FROM idempotency_key k JOIN idempotency_operation o ON o.key_id = k.id
                    JOIN refused ON refused.name = o.name
                WHERE {_which(key_id)}
                ORDER BY k.due_at LIMIT %(limit)s FOR NO KEY UPDATE OF k SKIP LOCKED
            )
            UPDATE idempotency_key AS k
            SET due_at = clock_timestamp() + due.seconds * (1 + random() / 2) * interval '1 second'
            FROM due WHERE k.id = due.id AND k.state = 'in_progress' AND {_STILL_DUE}
            """,
            {
                "names": list(waits),
                "seconds": [float(wait) for wait in waits.values()],
                "id": key_id,
                "limit": limit,
            },
        )
        return int(cursor.rowcount)


def count(*, connection: BaseDatabaseWrapper, at_most: int) -> int:
    """Return how many rows are due, counted no further than `at_most`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT FROM idempotency_key WHERE due_at <= statement_timestamp() "
            "ORDER BY due_at LIMIT %s) AS due",
            [at_most],
        )
        return int(cursor.fetchone()[0])


def cancel(
    *, connection: BaseDatabaseWrapper, key_id: uuid.UUID, settlement: Settlement
) -> int | None:
    """Settle work that waits and of which nothing can have happened; return the key's new token, or None (R34)."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE idempotency_key AS k SET state = 'completed', due_at = NULL, token = k.token + 1,
                settled_at = clock_timestamp(), settled_by = %(by)s, evidence = %(evidence)s
            WHERE k.id = %(id)s AND k.state = 'in_progress' AND k.deferred AND k.due_at IS NOT NULL
              AND NOT EXISTS ({OPEN_STEP}) AND NOT EXISTS ({APPLIED_STEP})
            RETURNING k.token, {TOLD}
            """,
            settled_parameters(key_id, 0, settlement),
        )
        row = cursor.fetchone()
    if row is None:
        return None
    token, *told = row
    announce(connection, told, by=settlement.by)
    return int(token)


def begin_again(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID, gave_up: str) -> bool:
    """Let work wait for a run at once, in a new cycle of attempts (R33): such as waits, was given up, or is unfinished.

    Of what was given up nothing may have happened, nor may it still happen. Of what is unknown no step may be open: the
    next run gets from the record what happened, and does the rest.

    Args:
        gave_up: the code of the error with which work is given up; one that ended otherwise is over.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH again AS (
                UPDATE idempotency_key AS k SET state = 'in_progress', token = k.token + 1, due_at = clock_timestamp(),
                    settled_at = NULL, settled_by = '', evidence = '{{}}', unknown_since = NULL,
                    unfinished = false, {NEEDS_NOBODY},
                    next_lookup_at = CASE WHEN k.watched THEN k.next_lookup_at END
                FROM idempotency_operation AS o
                WHERE k.id = %(id)s AND o.key_id = k.id AND k.deferred AND (
                    k.state = 'in_progress' AND k.due_at IS NOT NULL
                    OR k.state = 'unknown' AND NOT EXISTS ({OPEN_STEP})
                    OR k.state = 'completed' AND o.error ->> 'code' = %(gave_up)s
                        AND NOT EXISTS ({OPEN_STEP}) AND NOT EXISTS ({APPLIED_STEP}))
                RETURNING k.id
            )
            UPDATE idempotency_operation AS o SET cycle_attempts = 0, error = NULL, updated_at = clock_timestamp()
            FROM again WHERE o.key_id = again.id
            """,
            {"id": key_id, "gave_up": gave_up},
        )
        return bool(cursor.rowcount == 1)
