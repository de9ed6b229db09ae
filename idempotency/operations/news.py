"""What is heard from the other side without having asked: an event, a statement (R37, R39).

It never settles a key by itself. It makes a look-up come at once, and find what it looks for; what it says happened is
evidence like the ending of a call; and what contradicts a settlement is put on record and shown to a person.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import connections

from idempotency import tracing
from idempotency.conf import conf
from idempotency.ledger import history, sealing, storable
from idempotency.ledger.endings import weigh
from idempotency.types import News, OutsideResult, State


def heard_of(
    *, key_id: uuid.UUID, step: str, reference: str, result: OutsideResult | None = None
) -> State | None:
    """Note what the other side says of a step, and look an unknown key up at once; in the open transaction.

    Args:
        reference: the other side's id of it, or "".
        result: it happened, and this is what a call would have returned. That is put on record as evidence, whatever
            the key's state: nothing ends as if it had not happened, and no run makes it again.

    Returns: the key's state, or None where the key has been purged.
    """
    parameters: dict[str, Any] = {
        "key": key_id,
        "step": step,
        "reference": storable.text(reference)[:200],
        "applied": result is not None,
        "result": None if result is None else sealing.seal_json(storable.as_json(result.record)),
    }
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(_HEARD, parameters)
        row = cursor.fetchone()
    if row is None:
        return None
    state, traceparent = row
    if result is not None and state == State.UNKNOWN:
        weigh(connection=connections[conf.DATABASE], key_id=key_id)
    tracing.link(traceparent)
    return State(state)


_HEARD = """
WITH k AS (
    UPDATE idempotency_key SET
        next_lookup_at = CASE WHEN state = 'unknown' THEN clock_timestamp() ELSE next_lookup_at END,
        due_at = CASE WHEN %(applied)s AND due_at IS NOT NULL THEN clock_timestamp() ELSE due_at END,
        journal_version = journal_version + %(applied)s::int
    WHERE id = %(key)s
    RETURNING id, generation, state, traceparent
), s AS (
    UPDATE idempotency_step AS s SET
        reference = COALESCE(NULLIF(s.reference, ''), %(reference)s),
        applied_at = CASE WHEN %(applied)s THEN clock_timestamp() END,
        result = %(result)s::jsonb
    FROM k WHERE s.key_id = k.id AND s.generation = k.generation AND s.name = %(step)s AND s.applied_at IS NULL
        AND s.rotation = (
            SELECT max(t.rotation) FROM idempotency_step AS t
            WHERE t.key_id = k.id AND t.generation = k.generation AND t.name = %(step)s)
)
SELECT state, traceparent FROM k
"""


def late_news(
    *,
    key_id: uuid.UUID | None,
    actor: str,
    detail: Mapping[str, Any],
    news: News = News.OTHERWISE,
) -> None:
    """Record that something happened outside which the key's settlement does not say, and call a person (R39).

    The same news of a key is raised once, whoever hears it again: an answer, an event, a look-up.

    Args:
        key_id: None where nobody knows of which key it is; then it is unrecorded, unless it cannot even be read.
        detail: plain JSON: what was heard, and what our books had said. Staff read `gateway_reference`, `about`,
            `kind`, `our_books_said`, `said` and `expected` at once; the rest is shown to whoever may see values.
        news: what is wrong, which decides what staff are told to do.
    """
    connection = connections[conf.DATABASE]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state FROM idempotency_key WHERE id = %s FOR NO KEY UPDATE", [key_id]
        )
        row = cursor.fetchone()
    state = row[0] if row else "purged"
    if key_id is None:
        state = "not known"
        news = news if news is News.UNREADABLE else News.UNRECORDED
    history.late_news(
        connection=connection, key_id=key_id, state=state, actor=actor, detail=detail, news=news
    )
