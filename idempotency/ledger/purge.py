"""Forgetting, in small steps: answers after RESULT_TTL, whole keys after KEY_TTL (R20, R21).

Only settled keys that nobody watches go. A batch is one short statement that skips locked rows, so it waits for nobody
and nobody waits for it; a purge that is killed goes on where it was. After each batch it pauses for a multiple of what
the batch took: it leaves the server to the claims, and the more the busier that is. Ages are compared with
`statement_timestamp()`, which is stable: it bounds the walk over the index, where the volatile `clock_timestamp()`
would have it read whole.
"""

from dataclasses import dataclass

from django.db import connections

from idempotency.clock import SYSTEM, Clock
from idempotency.conf import conf

SECONDS = 10.0
"""For one purge: it holds a worker for so long, and is well below the hard limit of the task that it may run in."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What a batch removed."""

    answers: int
    keys: int


def purge(*, seconds: float = SECONDS, pause: float | None = None, clock: Clock = SYSTEM) -> Purged:
    """Remove what has expired, batch by batch, until nothing is left or the seconds are over.

    Args:
        pause: after each batch, in times of what it took; None: `PURGE_PAUSE`.
    """
    times = conf.PURGE_PAUSE if pause is None else pause
    until = clock.now() + seconds
    answers = keys = 0
    while True:
        began = clock.now()
        batch = purge_batch(limit=conf.PURGE_BATCH)
        ended = clock.now()
        answers, keys = answers + batch.answers, keys + batch.keys
        rest = times * (ended - began)
        if batch == Purged(0, 0) or ended + rest >= until:
            return Purged(answers=answers, keys=keys)
        clock.wait(None, rest)


def purge_batch(*, limit: int) -> Purged:
    """Remove at most `limit` expired answers and `limit` expired keys; what is zero in both is all done."""
    parameters = {"limit": limit, "result_ttl": conf.RESULT_TTL, "key_ttl": conf.KEY_TTL}
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(_KEYS, parameters)
        keys = cursor.rowcount
        cursor.execute(_ANSWERS, parameters)
        return Purged(answers=cursor.rowcount, keys=keys)


_KEYS = """
WITH gone AS MATERIALIZED (
    SELECT id FROM idempotency_key
    WHERE settled_at <= statement_timestamp() - %(key_ttl)s * interval '1 second' AND NOT watched
    ORDER BY settled_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), senders AS (
    DELETE FROM idempotency_sender x USING idempotency_step s, gone WHERE x.step_id = s.id AND s.key_id = gone.id
), steps AS (
    DELETE FROM idempotency_step s USING gone WHERE s.key_id = gone.id
), work AS (
    DELETE FROM idempotency_operation o USING gone WHERE o.key_id = gone.id
)
DELETE FROM idempotency_key k USING gone WHERE k.id = gone.id
"""

_ANSWERS = """
WITH old AS MATERIALIZED (
    SELECT id FROM idempotency_key
    WHERE settled_at <= statement_timestamp() - %(result_ttl)s * interval '1 second' AND body IS NOT NULL
    ORDER BY settled_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE idempotency_key k SET body = NULL, headers = '{}', note = 'expired' FROM old WHERE k.id = old.id
"""
