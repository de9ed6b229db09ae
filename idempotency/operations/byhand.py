"""What a person may do about deferred work: begin it again, or end it; on record with their name and their reason."""

import uuid

from django.db import connections

from idempotency.conf import conf
from idempotency.exceptions import IdempotencyError
from idempotency.http import problem
from idempotency.ledger import due, history
from idempotency.ledger.phases import phase
from idempotency.operations import monitor, wake
from idempotency.operations.settler import GAVE_UP


class NotNow(IdempotencyError):
    """The work is not in a state in which this can be done to it; the message says what would be."""


def retry(*, operation_id: uuid.UUID, actor: str, reason: str) -> None:
    """Begin a new cycle of attempts at once, under the same key, for work that waits, was given up,
    or is unfinished with every step known (R33).

    Raises:
        NotNow: it is under way, has succeeded, or ended for good.
    """
    key_id, _ = _key_of(operation_id)
    with phase(using=conf.DATABASE) as phases:
        connection = phases.connection
        if not due.begin_again(connection=connection, key_id=key_id, gave_up=GAVE_UP):
            raise NotNow(
                "Only work that waits, was given up, or is unfinished with every step known, begins again."
            )
        history.record(
            connection=connection, key_id=key_id, kind="retried", actor=actor, reason=reason
        )
        wake.nudge(key_id=key_id)


def cancel(*, operation_id: uuid.UUID, actor: str, reason: str) -> None:
    """End work that waits and of which nothing can have happened; doing it twice is a success (R34).

    Raises:
        NotNow: it has begun, or is over.
    """
    key_id, scope = _key_of(operation_id)
    try:
        monitor.cancel(id=operation_id, scope=scope, by=actor)
    except problem.TooLate as error:
        raise NotNow("Too late: it has begun, or is over.") from error
    with phase(using=conf.DATABASE) as phases:
        history.record(
            connection=phases.connection,
            key_id=key_id,
            kind="cancelled",
            actor=actor,
            reason=reason,
        )


def _key_of(operation_id: uuid.UUID) -> tuple[uuid.UUID, str]:
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT k.id, k.scope FROM idempotency_operation o JOIN idempotency_key k ON k.id = o.key_id "
            "WHERE o.id = %s",
            [operation_id],
        )
        row = cursor.fetchone()
    if row is None:
        raise NotNow("There is no such work any more.")
    return row[0], row[1]
