"""What the journal says of a key, called `k`, as the conditions of its settlements (R14, R36)."""

import uuid

from django.db.backends.base.base import BaseDatabaseWrapper

# A step whose outcome is not known, with no sender that applied it: nothing may be settled as final over it.
OPEN_STEP = """
    SELECT FROM idempotency_step s JOIN idempotency_sender x ON x.step_id = s.id
    WHERE s.key_id = k.id AND s.generation = k.generation AND s.applied_at IS NULL
      AND (x.ending IS NULL OR x.ending = 'ambiguous')
"""

APPLIED_STEP = """
    SELECT FROM idempotency_step s
    WHERE s.key_id = k.id AND s.generation = k.generation AND s.applied_at IS NOT NULL
"""

# Every call has ended, something was applied, and the handler did not finish: the next run goes on from the record.
UNFINISHED = f"EXISTS ({APPLIED_STEP}) AND NOT EXISTS ({OPEN_STEP})"

# A sender that may yet contradict how the key was settled.
OPEN_SENDER = """
    SELECT FROM idempotency_step s JOIN idempotency_sender x ON x.step_id = s.id
    WHERE s.key_id = k.id AND s.generation = k.generation
      AND (x.ending IS NULL OR x.ending = 'ambiguous' AND s.applied_at IS NULL)
"""


# What was raised about it and no person has marked as handled.
UNHANDLED_ALARM = """
    SELECT FROM idempotency_event AS e WHERE e.key_id = k.id AND e.alarming AND NOT EXISTS (
        SELECT FROM idempotency_event AS h
        WHERE h.detail ? 'handles' AND h.detail ->> 'handles' = e.id::text)
"""

# Nobody is needed any more, but for what was raised: that is over once a person has seen to it, however the key ends.
NEEDS_NOBODY = f"""
    (needs_person_since, needs_person_reason) = (
        SELECT CASE WHEN raised THEN k.needs_person_since END, CASE WHEN raised THEN k.needs_person_reason ELSE '' END
        FROM (SELECT k.needs_person_since IS NOT NULL AND EXISTS ({UNHANDLED_ALARM}) AS raised) AS person)
"""


def open_step(*, tolerate: bool) -> str:
    """Return `OPEN_STEP`, or what of it counts where a sender that never ended is tolerated on a keyed gateway."""
    return OPEN_STEP + (" AND NOT (s.keyed AND x.ending IS NULL)" if tolerate else "")


def weigh(*, connection: BaseDatabaseWrapper, key_id: uuid.UUID) -> None:
    """Say of an unknown key whether it is unfinished, in the transaction that has written to its journal.

    That one has locked the row by its own update, so nobody has moved the key since.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE idempotency_key AS k SET unfinished = {UNFINISHED} WHERE k.id = %s AND k.state = 'unknown'",
            [key_id],
        )
