"""What is written down about a key beyond its ordinary life."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency import telemetry
from idempotency.ledger.writing import after_commit


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
            [key_id, kind, actor[:150], reason, json.dumps(dict(detail or {})), alarming],
        )


def refused_repeat(
    *, connection: BaseDatabaseWrapper, key_id: uuid.UUID, detail: Mapping[str, Any]
) -> None:
    """Record that a repeat was refused, and why; the same once a minute at most, however often it comes."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_event (key_id, kind, actor, reason, detail, alarming)
            SELECT %(key)s, 'refused-repeat', 'request', '', %(detail)s, false WHERE NOT EXISTS (
                SELECT FROM idempotency_event WHERE key_id = %(key)s AND kind = 'refused-repeat'
                AND detail = %(detail)s AND at > clock_timestamp() - interval '1 minute')
            """,
            {"key": key_id, "detail": json.dumps(dict(detail), sort_keys=True)},
        )


def late_news(
    *,
    connection: BaseDatabaseWrapper,
    key_id: uuid.UUID | None,
    state: str,
    actor: str,
    detail: Mapping[str, Any],
) -> None:
    """Record that something happened which the key's state does not say, and call a person (R39)."""
    record(
        connection=connection,
        key_id=key_id,
        kind="late-news",
        actor=actor,
        reason=f"It happened, while the key was {state}.",
        detail=detail,
        alarming=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET needs_person_since = COALESCE(needs_person_since, clock_timestamp()), "
            "needs_person_reason = %s WHERE id = %s AND state <> 'in_progress'",
            ["It happened at the other side after the key was settled otherwise.", key_id],
        )
    told = "" if key_id is None else str(key_id)
    after_commit(connection, telemetry.LateNews(heard_by=actor, state=state, key_id=told))
