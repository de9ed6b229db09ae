"""What is read from the ledger. Nothing here decides a write: every write carries its own guard."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.conf import conf
from idempotency.ledger.phases import Phases
from idempotency.ledger.values import Identity
from idempotency.types import State


@dataclass(frozen=True, slots=True)
class Standing:
    """How a key stands, read under its lock."""

    id: uuid.UUID
    state: State
    token: int
    waits: bool
    """Whether deferred work waits in it."""

    def settled_under(self, token: int) -> bool:
        """Whether the run with that token has settled it, or left its promise in it."""
        return self.token == token and (self.state is State.COMPLETED or self.waits)


def standing(*, phases: Phases, identity: Identity, patience: float) -> Standing | None:
    """Return how the key stands once no transaction of an earlier claim is left: what it says then is final.

    Args:
        patience: seconds to wait for such a transaction to end.

    Raises:
        django.db.OperationalError: it did not end in time, or the database cannot be reached.
    """
    limit = f"{patience * 1000:.0f}ms"
    with phases.connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, true), pg_advisory_xact_lock(%s)",
            [limit, identity.lock_number()],
        )
    # What ended while the lock was waited for may be newer than this transaction's snapshot.
    phases.roll_back()
    phases.open()
    with phases.connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [limit])
        cursor.execute(
            "SELECT id, state, token, due_at IS NOT NULL FROM idempotency_key "
            "WHERE key = %s AND scope = %s AND operation = %s FOR NO KEY UPDATE",
            [identity.key, identity.scope, identity.operation],
        )
        row = cursor.fetchone()
    return Standing(row[0], State(row[1]), row[2], row[3]) if row else None


@dataclass(frozen=True, slots=True)
class Names:
    """By what its caller knows a key: the key itself, and the operation that its 202 named."""

    key: str
    operation_id: uuid.UUID | None


def names_of(*, key_id: uuid.UUID) -> Names | None:
    """Return by what its caller knows a key, or None where it is purged: for messages about business rows."""
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(
            "SELECT k.key, o.id FROM idempotency_key k LEFT JOIN idempotency_operation o ON o.key_id = k.id "
            "WHERE k.id = %s",
            [key_id],
        )
        row = cursor.fetchone()
    return None if row is None else Names(*row)


def states(*, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, State]:
    """Return the states of keys by id, without those that are purged: for business rows that show them.

    A lease that has run out reads as unknown, whether or not the reconciler has been there yet.
    """
    connection: BaseDatabaseWrapper = connections[conf.DATABASE]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, CASE WHEN state = 'in_progress' AND lease_until <= clock_timestamp() "
            "THEN 'unknown' ELSE state END FROM idempotency_key WHERE id = ANY(%s)",
            [list(ids)],
        )
        return {row[0]: State(row[1]) for row in cursor.fetchall()}
