"""How a key is settled: every change of state is compare-and-set, with state and token in its WHERE (R12, R15).

Each function reports whether it wrote. "No" means that somebody else settled first: the caller re-reads and answers
from what it finds.
"""

import uuid

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.ledger import draft as drafts
from idempotency.ledger import storable
from idempotency.ledger.draft import Draft
from idempotency.ledger.endings import (
    APPLIED_STEP,
    NEEDS_NOBODY,
    OPEN_STEP,
    UNFINISHED,
    open_step,
)
from idempotency.ledger.values import NOTHING_NEW, SET_ABOUT, About, Settlement
from idempotency.ledger.work import SET_CONCLUSION, Conclusion
from idempotency.ledger.writing import (
    SETTLED,
    TOLD,
    announce,
    answer_parameters,
    settle,
    settled_parameters,
    write,
)
from idempotency.types import Answer

# Held by the claim with that token: what waits for a runner is held by nobody, not even by the claim that promised it.
_OWNED = "k.id = %(id)s AND k.token = %(token)s AND k.state = 'in_progress' AND k.due_at IS NULL"

_COMPLETED = f"""
    state = 'completed', lease_until = NULL, due_at = NULL,
    status = %(status)s, body = %(body)s, content_type = %(content_type)s, headers = %(headers)s,
    note = %(note)s, {SET_ABOUT}, {SETTLED}
"""


def complete(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    answer: Answer,
    settlement: Settlement,
    called: bool,
    about: About = NOTHING_NEW,
    refusal: bool = False,
    over_open: bool = False,
    draft: Draft | None = None,
    written: bool = False,
) -> bool:
    """Settle the key with its final answer.

    Args:
        draft: the key's row, where it may not be written yet: then it is written with the answer.
        written: an earlier statement of this transaction has written it, unless a savepoint undid that.
        called: whether the key may have a journal; if not, only a key without one is completed.
        refusal: the answer says that nothing was done, so nothing may have been applied.
        over_open: a person closes the key although a sender may still act; it has to be watched then (R37).
    """
    if draft is not None and not written:
        return drafts.complete(
            connection=connection, draft=draft, answer=answer, settlement=settlement, about=about
        )
    guard = f"NOT EXISTS ({OPEN_STEP})" if called else "NOT k.call_begun"
    if over_open:
        guard = "true"
    if refusal and called:
        guard += f" AND NOT EXISTS ({APPLIED_STEP})"
    change = f"SET {_COMPLETED} WHERE {_OWNED} AND NOT k.deferred AND {guard}"
    parameters = (
        answer_parameters(answer)
        | about.parameters()
        | settled_parameters(key_id, token, settlement)
    )
    if draft is None:
        sql = f"UPDATE idempotency_key AS k {change}"
    else:
        sql = f"{drafts.INSERT_COMPLETED} {drafts.CONFLICT} DO UPDATE {change}"
        parameters |= draft.parameters()
    return settle(connection, sql, parameters, by=settlement.by)


def complete_deferred(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    settlement: Settlement,
    ended: Conclusion,
    about: About = NOTHING_NEW,
) -> bool:
    """Settle a deferred key with what its work came to; its answer is the 202 that it stored at the start (R31).

    Where that is an error, nothing may have been applied.
    """
    applied = f"AND NOT EXISTS ({APPLIED_STEP})" if ended.error is not None else ""
    return settle(
        connection,
        f"""
        WITH k AS (
            UPDATE idempotency_key AS k SET state = 'completed', lease_until = NULL, due_at = NULL,
                {SET_ABOUT}, {SETTLED}
            WHERE {_OWNED} AND k.deferred
              AND NOT EXISTS ({OPEN_STEP}) {applied}
            RETURNING k.*
        )
        UPDATE idempotency_operation AS o SET {SET_CONCLUSION} FROM k WHERE o.key_id = k.id
        """,
        about.parameters() | settled_parameters(key_id, token, settlement) | ended.parameters(),
        by=settlement.by,
    )


def promise(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    answer: Answer,
    about: About = NOTHING_NEW,
    delay: float = 0,
) -> bool:
    """Store the 202 and let the key wait for a runner of its work: `due_at` takes the lease's place (R31, R32)."""
    return write(
        connection,
        f"""
        UPDATE idempotency_key AS k SET deferred = true, lease_until = NULL,
            due_at = clock_timestamp() + %(delay)s * interval '1 second',
            status = %(status)s, body = %(body)s, content_type = %(content_type)s, headers = %(headers)s,
            note = %(note)s, {SET_ABOUT}
        WHERE {_OWNED} AND NOT k.deferred AND NOT EXISTS ({OPEN_STEP})
          AND EXISTS (SELECT FROM idempotency_operation WHERE key_id = k.id)
        """,
        answer_parameters(answer)
        | about.parameters()
        | {"id": key_id, "token": token, "delay": delay},
    )


def wait_again(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    delay: float,
    tolerate: bool = False,
    over_applied: bool = False,
) -> bool:
    """Give up the lease of a deferred key until `delay` seconds from now: certainly nothing happened.

    Refused while a step is applied, or open.

    Args:
        tolerate: as for `release`.
        over_applied: the next run gets what is applied from the record, and does the rest.
    """
    applied = "" if over_applied else f"AND NOT EXISTS ({APPLIED_STEP})"
    return write(
        connection,
        f"""
        UPDATE idempotency_key AS k SET lease_until = NULL, token = k.token + 1,
            due_at = clock_timestamp() + %(delay)s * interval '1 second',
            {NEEDS_NOBODY}
        WHERE {_OWNED} AND k.deferred
          AND NOT EXISTS ({open_step(tolerate=tolerate)}) {applied}
        """,
        {"id": key_id, "token": token, "delay": delay},
    )


def release(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    settlement: Settlement,
    tolerate: bool = False,
) -> bool:
    """Settle as "certainly changed nothing", so that the same key may be tried again.

    Refused while a step is applied, or open.

    Args:
        tolerate: allow a sender that never ended where the other side honours keys: should it send after all, it does
            so under the key of the next try (R36).
    """
    return settle(
        connection,
        f"""
        UPDATE idempotency_key AS k SET state = 'released', lease_until = NULL, due_at = NULL,
            token = k.token + 1, {SETTLED}
        WHERE {_OWNED} AND k.call_begun
          AND NOT k.deferred AND NOT EXISTS ({open_step(tolerate=tolerate)}) AND NOT EXISTS ({APPLIED_STEP})
        """,
        settled_parameters(key_id, token, settlement),
        by=settlement.by,
    )


def mark_unknown(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    lookup_after: float,
    needs_person: str = "",
) -> bool:
    """Say that nobody knows yet; the token moves, so that whoever ran it can write nothing more to the key.

    Args:
        lookup_after: seconds until the first look-up.
        needs_person: why a person has to decide, or "".
    """
    return settle(
        connection,
        f"""
        UPDATE idempotency_key AS k SET state = 'unknown', token = k.token + 1, lease_until = NULL, due_at = NULL,
            unknown_since = clock_timestamp(), lookups = 0,
            unfinished = {UNFINISHED},
            next_lookup_at = clock_timestamp() + %(after)s * interval '1 second',
            needs_person_since = CASE WHEN %(why)s <> '' THEN COALESCE(k.needs_person_since, clock_timestamp())
                                      ELSE k.needs_person_since END,
            needs_person_reason = COALESCE(NULLIF(%(why)s, ''), k.needs_person_reason)
        WHERE {_OWNED}
        """,
        {
            "id": key_id,
            "token": token,
            "after": lookup_after,
            "why": storable.text(needs_person)[:200],
        },
        by="run",
    )


def lapse(
    *, connection: BaseDatabaseWrapper, limit: int, key_id: uuid.UUID | None = None
) -> list[uuid.UUID]:
    """Turn every key whose lease has run out, or that one, into an unknown one (R11); return which."""
    late = "lease_until <= statement_timestamp()"
    # Of a row that is known by its id, asked in a form that no index can answer: Note [Due].
    which = f"id = %(id)s AND COALESCE({late}, false)" if key_id else late
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH late AS MATERIALIZED (
                SELECT id, token FROM idempotency_key
                WHERE state = 'in_progress' AND {which} AND (call_begun OR deferred)
                ORDER BY lease_until LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
            )
            UPDATE idempotency_key AS k SET state = 'unknown', token = k.token + 1, lease_until = NULL,
                unknown_since = clock_timestamp(), next_lookup_at = clock_timestamp(), lookups = 0,
                unfinished = {UNFINISHED}
            FROM late
            WHERE k.id = late.id AND k.token = late.token AND k.state = 'in_progress'
              AND k.lease_until <= clock_timestamp()
            RETURNING {TOLD}
            """,
            {"limit": limit, "id": key_id},
        )
        rows = cursor.fetchall()
    for row in rows:
        announce(connection, row, by="lease")
    return [row[0] for row in rows]


def take_over(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    token: int,
    journal_version: int,
    lease: float,
) -> int | None:
    """Make an unknown key this process's own, to settle it on evidence read at that journal version (R36).

    Returns: the new token, or None where the key or its journal has moved since.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE idempotency_key AS k SET state = 'in_progress', token = k.token + 1, unknown_since = NULL,
                unfinished = false, claimed_at = clock_timestamp(),
                next_lookup_at = CASE WHEN k.watched THEN k.next_lookup_at END,
                lease_until = clock_timestamp() + %(lease)s * interval '1 second'
            WHERE k.id = %(id)s AND k.token = %(token)s AND k.state = 'unknown'
              AND k.journal_version = %(version)s
            RETURNING k.token
            """,
            {"id": key_id, "token": token, "version": journal_version, "lease": lease},
        )
        row = cursor.fetchone()
    return row[0] if row else None
