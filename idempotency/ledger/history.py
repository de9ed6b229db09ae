"""What is written down about a key beyond its ordinary life."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency import telemetry
from idempotency.ledger import storable
from idempotency.ledger.endings import NEEDS_NOBODY
from idempotency.ledger.writing import after_commit
from idempotency.types import News


def record(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID | None,
    kind: str,
    actor: str,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
    alarming: bool = False,
) -> None:
    """Append one event."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO idempotency_event (key_id, kind, actor, reason, detail, alarming) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            [
                key_id,
                kind,
                storable.text(actor)[:150],
                storable.text(reason),
                storable.as_json(detail or {}),
                alarming,
            ],
        )


def refused(
    *, connection: BaseDatabaseWrapper, key_id: uuid.UUID, detail: Mapping[str, Any]
) -> None:
    """Record that a repeat was refused; the same at most once a minute, however often it comes."""
    _unless_known(connection, key_id, "refused-repeat", "request", detail, seconds=60)


def replayed(
    *, connection: BaseDatabaseWrapper, key_id: uuid.UUID, detail: Mapping[str, Any]
) -> None:
    """Record a replay, at most one a minute; `MOST_REPLAYS` of a key are kept, for events are never deleted."""
    _unless_known(
        connection, key_id, "replayed", "request", detail, seconds=60, alike=True, most=MOST_REPLAYS
    )


def looked_up(
    *, connection: BaseDatabaseWrapper, key_id: uuid.UUID, decision: str, detail: str
) -> None:
    """Record a look-up that settled nothing; the same at most once an hour: an outage may last for days."""
    told = {"decision": decision, "detail": detail[:300]}
    _unless_known(connection, key_id, "looked-up", "reconciler", told, seconds=3_600)


MOST_REPLAYS = 50
"""Replays of one key on record; who repeats more often than that is no longer asked about."""


def _unless_known(
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID,
    kind: str,
    actor: str,
    detail: Mapping[str, Any],
    *,
    seconds: float,
    alike: bool = False,
    most: int | None = None,
) -> None:
    """Record it unless the same was recorded in the last seconds.

    Args:
        alike: whatever its detail, it is the same.
        most: events of this kind that a key may have.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_event (key_id, kind, actor, reason, detail, alarming)
            SELECT %(key)s, %(kind)s::text, %(actor)s, '', %(detail)s, false WHERE NOT EXISTS (
                SELECT FROM idempotency_event WHERE key_id = %(key)s AND kind = %(kind)s::text
                AND (%(alike)s OR detail = %(detail)s)
                AND at > clock_timestamp() - %(seconds)s * interval '1 second')
            AND (%(most)s::int IS NULL OR (
                SELECT count(*) FROM idempotency_event WHERE key_id = %(key)s AND kind = %(kind)s::text)
                < %(most)s::int)
            """,
            {
                "key": key_id,
                "kind": kind,
                "actor": actor,
                "detail": storable.as_json(detail),
                "seconds": seconds,
                "alike": alike,
                "most": most,
            },
        )


def late_news(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID | None,
    state: str,
    actor: str,
    detail: Mapping[str, Any],
    news: News = News.OTHERWISE,
) -> None:
    """Record that something happened which the key's state does not say, and call a person (R39).

    The same news of a key is raised once, word for word. Its row is locked by the caller, so that of two who hear it at
    once the second one finds what the first has written.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_event (key_id, kind, actor, reason, detail, alarming)
            SELECT %(key)s::uuid, 'late-news', %(actor)s, %(reason)s, %(detail)s::jsonb, true WHERE NOT EXISTS (
                SELECT FROM idempotency_event
                WHERE key_id = %(key)s::uuid AND kind = 'late-news' AND detail = %(detail)s::jsonb)
            """,
            {
                "key": key_id,
                "actor": storable.text(actor)[:150],
                "reason": news.sentence
                if key_id is None
                else f"{news.sentence} The key was {state}.",
                "detail": storable.as_json({"news": news.value, **detail}),
            },
        )
        if cursor.rowcount == 0:
            return
        # Whatever its state: one that is in progress keeps the mark as it is settled, until a person has seen to it.
        cursor.execute(
            "UPDATE idempotency_key SET needs_person_since = COALESCE(needs_person_since, clock_timestamp()), "
            "needs_person_reason = %s WHERE id = %s",
            [news.sentence, key_id],
        )
    told = "" if key_id is None else str(key_id)
    after_commit(connection, telemetry.LateNews(heard_by=actor, state=state, key_id=told))


def was_raised(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID, reference: str) -> bool:
    """Whether late news of the other side's id is on record for the key."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM idempotency_event WHERE key_id = %s AND kind = 'late-news' "
            "AND detail ->> 'gateway_reference' = %s)",
            [key_id, storable.text(reference)],
        )
        return bool(cursor.fetchone()[0])


def handled(
    *, connection: BaseDatabaseWrapper, event_id: int, actor: str, reason: str, form: uuid.UUID
) -> bool:
    """Record that a person has seen to an alarming event; its key needs nobody any more once all of them are seen to.

    Args:
        form: the key of the form that says so: the same one counts once.

    Returns: whether it was recorded; not, where somebody was first, or there is no such alarm.
    """
    said: dict[str, Any] = {
        "event": event_id,
        "actor": actor[:150],
        "reason": storable.text(reason),
        "form": str(form),
    }
    with connection.cursor() as cursor:
        cursor.execute(_HANDLED, said)
        row = cursor.fetchone()
        if row is not None:
            cursor.execute(_SEEN_TO, {"key": row[0]})
    return row is not None


_HANDLED = """
INSERT INTO idempotency_event (key_id, kind, actor, reason, detail, alarming)
SELECT key_id, 'handled', %(actor)s, %(reason)s, jsonb_build_object('handles', id::text, 'form', %(form)s::text), false
FROM idempotency_event WHERE id = %(event)s AND alarming
ON CONFLICT DO NOTHING RETURNING key_id
"""

# A key that is not settled needs a person for another reason, too.
_SEEN_TO = f"""
UPDATE idempotency_key AS k SET {NEEDS_NOBODY}
WHERE k.id = %(key)s AND k.settled_at IS NOT NULL AND k.needs_person_since IS NOT NULL
"""
