"""What the reconciler reads and writes: whose turn it is, what is not known, and what a look-up proved (R36)."""

import json
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency import telemetry
from idempotency.conf import conf
from idempotency.ledger import sealing, storable
from idempotency.ledger.endings import OPEN_SENDER, weigh
from idempotency.ledger.evidence import SenderView, Snapshot, StepView
from idempotency.ledger.process import ProcessIdentity, current_process
from idempotency.ledger.values import Identity
from idempotency.ledger.writing import after_commit, write
from idempotency.types import Ending, OpenStep, OutsideResult, State

# -- whose turn it is --------------------------------------------------------------------------------------------------


def due(*, connection: BaseDatabaseWrapper, limit: int) -> list[uuid.UUID]:
    """Return the keys whose look-up is due, oldest first, without taking them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM idempotency_key WHERE next_lookup_at <= statement_timestamp() "
            "ORDER BY next_lookup_at LIMIT %s",
            [limit],
        )
        return [row[0] for row in cursor.fetchall()]


def take_due(*, connection: BaseDatabaseWrapper, turn: float) -> uuid.UUID | None:
    """Take the key whose look-up is due for longest; nobody else takes it for `turn` seconds.

    `statement_timestamp()`: only a stable function can bound the walk over the index.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH due AS MATERIALIZED (
                SELECT id FROM idempotency_key WHERE next_lookup_at <= statement_timestamp()
                ORDER BY next_lookup_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
            )
            UPDATE idempotency_key AS k
            SET next_lookup_at = clock_timestamp() + %(turn)s * interval '1 second'
            FROM due WHERE k.id = due.id RETURNING k.id
            """,
            {"turn": turn},
        )
        row = cursor.fetchone()
    return row[0] if row else None


def note_the_dead(*, connection: BaseDatabaseWrapper) -> int:
    """Write down which open senders of this machine are proven dead, so that the settling time can begin to pass."""
    here = current_process()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, host, boot_id, pid_namespace, pid, process_started FROM idempotency_sender "
            "WHERE ending IS NULL AND dead_at IS NULL AND boot_id = %s AND pid_namespace = %s",
            [here.boot_id, here.pid_namespace],
        )
        dead = [row[0] for row in cursor.fetchall() if ProcessIdentity(*row[1:]).is_proven_dead()]
        if dead:
            cursor.execute(
                "UPDATE idempotency_sender SET dead_at = clock_timestamp() "
                "WHERE id = ANY(%s) AND ending IS NULL AND dead_at IS NULL",
                [dead],
            )
    return len(dead)


# -- what is not known -------------------------------------------------------------------------------------------------


def snapshot(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID) -> Snapshot | None:
    """Read a key with the journal of its present life; None where there is no such key."""
    with connection.cursor() as cursor:
        cursor.execute(_KEY, {"id": key_id})
        row = cursor.fetchone()
        if row is None:
            return None
        cursor.execute(_STEPS, {"id": key_id})
        steps = tuple(_step(row, values) for values in cursor.fetchall())
    return Snapshot(
        id=row[0],
        identity=Identity(scope=row[1], operation=row[2], key=row[3]),
        state=State(row[4]),
        token=row[5],
        generation=row[6],
        journal_version=row[7],
        deferred=row[8],
        watched=row[9],
        accepted=row[10],
        lookups=row[11],
        unknown_for=float(row[12] or 0),
        # As text, like those it is compared with: without USE_TZ, Django takes the zone from a column.
        looked_at=datetime.fromisoformat(row[13]),
        traceparent=row[14],
        steps=steps,
    )


_KEY = """
SELECT id, scope, operation, key, state, token, generation, journal_version, deferred, watched, accepted, lookups,
    EXTRACT(epoch FROM clock_timestamp() - unknown_since), to_jsonb(clock_timestamp()) #>> '{}', traceparent
FROM idempotency_key WHERE id = %(id)s
"""

_STEPS = """
SELECT s.id, s.name, s.keyed, s.settling_seconds, s.downstream_key, s.payload, s.reference, s.first_send_at,
    s.result, (
        SELECT json_agg(
            json_build_array(x.id, x.ending, x.ended_at, x.send_before, x.dead_at, x.evidence) ORDER BY x.id)
        FROM idempotency_sender x WHERE x.step_id = s.id)
FROM idempotency_step s JOIN idempotency_key k ON k.id = s.key_id AND k.generation = s.generation
WHERE s.key_id = %(id)s ORDER BY s.id
"""


def _step(key: tuple[Any, ...], row: tuple[Any, ...]) -> StepView:
    step_id, name, keyed, settling, downstream_key, payload, reference, first, result, senders = row
    return StepView(
        id=step_id,
        name=name,
        keyed=keyed,
        settling=timedelta(seconds=settling),
        result=None
        if result is None
        else OutsideResult(reference, sealing.unseal_json(json.loads(result))),
        open_step=OpenStep(
            key_id=key[0],
            operation=key[2],
            name=name,
            downstream_key=downstream_key,
            payload=sealing.unseal(payload),
            reference=reference,
            first_send_at=first,
        ),
        senders=tuple(
            SenderView(
                id=sender_id,
                ending=Ending(ending) if ending else None,
                ended_at=_moment(ended),
                send_before=datetime.fromisoformat(before),
                dead_at=_moment(dead),
                evidence=evidence,
            )
            for sender_id, ending, ended, before, dead, evidence in senders or ()
        ),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


# -- what a look-up proved ---------------------------------------------------------------------------------------------


def record_proof(
    *,
    connection: BaseDatabaseWrapper,
    seen: Snapshot,
    applied: Mapping[int, OutsideResult],
    ended: Mapping[int, tuple[Ending, Mapping[str, Any]]],
) -> int | None:
    """Write what a look-up proved, compared with the key and the journal that it was made for.

    Args:
        applied: by step: it happened, and this is what the other side says of it.
        ended: by sender: how it ended, and the evidence.

    Returns: the journal's new version, or None where key or journal have moved since: then nothing is proven.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET journal_version = journal_version + 1 WHERE id = %s AND token = %s "
            "AND state = %s AND generation = %s AND journal_version = %s RETURNING journal_version",
            [seen.id, seen.token, seen.state, seen.generation, seen.journal_version],
        )
        row = cursor.fetchone()
        if row is None:
            return None
        for step_id, result in applied.items():
            cursor.execute(
                "UPDATE idempotency_step SET applied_at = clock_timestamp(), reference = %s, result = %s "
                "WHERE id = %s AND applied_at IS NULL",
                [
                    storable.text(result.reference)[:200],
                    sealing.seal_json(storable.as_json(result.record)),
                    step_id,
                ],
            )
        for sender_id, (ending, evidence) in ended.items():
            cursor.execute(
                "UPDATE idempotency_sender SET ending = %s, ended_at = clock_timestamp(), evidence = %s "
                "WHERE id = %s AND (ending IS NULL OR ending = 'ambiguous')",
                [ending, storable.as_json(evidence), sender_id],
            )
    weigh(connection=connection, key_id=seen.id)
    return int(row[0])


def look_again(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    after: float,
    answered: bool,
    needs_person: str = "",
) -> None:
    """Put the next look-up off by `after` seconds; after too many tries, or too long, a person is called (R38).

    Args:
        answered: whether the other side could be asked; an outage does not age a key.
        needs_person: why a person has to decide, or "".
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _LOOK_AGAIN,
            {
                "id": key_id,
                "after": after,
                "answered": answered,
                "why": storable.text(needs_person)[:200],
                "tries": conf.NEEDS_PERSON_TRIES,
                "patience": conf.NEEDS_PERSON_AFTER,
                "too_long": _TOO_LONG,
            },
        )
        row = cursor.fetchone()
    if row is not None and row[1]:
        after_commit(connection, telemetry.PersonNeeded(row[0], row[2], str(key_id)))


_TOO_LONG = "It is unknown for too long."
_LOOK_AGAIN = """
UPDATE idempotency_key AS k SET next_lookup_at = clock_timestamp() + %(after)s * interval '1 second',
    lookups = k.lookups + %(answered)s::int,
    needs_person_since = CASE WHEN said.why <> '' THEN COALESCE(k.needs_person_since, clock_timestamp())
                              ELSE k.needs_person_since END,
    needs_person_reason = COALESCE(NULLIF(said.why, ''), k.needs_person_reason)
FROM (
    SELECT id, CASE
        WHEN %(why)s <> '' THEN %(why)s
        WHEN %(answered)s AND state = 'unknown' AND (lookups + 1 >= %(tries)s
            OR unknown_since <= clock_timestamp() - %(patience)s * interval '1 second') THEN %(too_long)s
        ELSE '' END AS why
    FROM idempotency_key WHERE id = %(id)s FOR NO KEY UPDATE
) AS said
WHERE k.id = said.id AND (k.state = 'unknown' OR k.watched)
RETURNING k.operation, k.needs_person_since >= statement_timestamp(), k.needs_person_reason
"""


def watch(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID, after: float) -> bool:
    """Keep looking for late news about a settled key while one of its senders may still act (R36, R39)."""
    return write(
        connection,
        f"""
        UPDATE idempotency_key AS k SET watched = true, lookups = 0,
            next_lookup_at = clock_timestamp() + %(after)s * interval '1 second'
        WHERE k.id = %(id)s AND EXISTS ({OPEN_SENDER})
        """,
        {"id": key_id, "after": after},
    )


def stop_watching(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID, after: float) -> None:
    """End the watch over a key none of whose senders can act any more.

    Args:
        after: seconds since a sender's last moment to send, after which it is waited for no longer although nobody can
            prove it dead: its host may be gone for ever.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE idempotency_key AS k SET watched = false,
                next_lookup_at = CASE WHEN state = 'unknown' THEN next_lookup_at END
            WHERE id = %s AND NOT EXISTS (
                {OPEN_SENDER} AND x.send_before + %s * interval '1 second' > clock_timestamp())
            """,
            [key_id, after],
        )
