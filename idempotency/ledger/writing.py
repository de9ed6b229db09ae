"""How a settlement is written, and told once it is committed."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency import telemetry
from idempotency.ledger import sealing, storable
from idempotency.ledger.endings import NEEDS_NOBODY
from idempotency.ledger.values import Settlement
from idempotency.types import Answer

SETTLED = f"""
    settled_at = clock_timestamp(), settled_by = %(by)s, evidence = %(evidence)s,
    {NEEDS_NOBODY}
"""

TOLD = (
    "k.id, k.operation, k.state, k.key, k.request_id, k.deferred, "
    "EXTRACT(epoch FROM clock_timestamp() - k.created_at), "
    "CASE WHEN k.needs_person_since >= statement_timestamp() THEN k.needs_person_reason ELSE '' END"
)
"""What a settling statement returns of the key, called `k`, so that it can be told."""

_ROLES = frozenset({"request", "worker", "message", "reconciler", "run", "lease"})


def write(connection: BaseDatabaseWrapper, sql: str, parameters: Mapping[str, Any]) -> bool:
    """Run a compare-and-set of one key; return whether it wrote."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return bool(cursor.rowcount == 1)


def settle(
    connection: BaseDatabaseWrapper, sql: str, parameters: Mapping[str, Any], *, by: str
) -> bool:
    """Run a compare-and-set that settles one key; return whether it wrote."""
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} RETURNING {TOLD}", parameters)
        row = cursor.fetchone()
    if row is None:
        return False
    announce(connection, row, by=by)
    return True


def announce(connection: BaseDatabaseWrapper, row: Sequence[Any], *, by: str) -> None:
    """Tell, once the open transaction is committed, that a key was settled, and whether it needs a person.

    Args:
        row: what `TOLD` names.
        by: as in the settlement.
    """
    key_id, operation, state, key, request_id, deferred, seconds, reason = row
    after_commit(
        connection,
        telemetry.KeySettled(
            operation=operation,
            state=state,
            by=_role(by),
            seconds=float(seconds),
            deferred=deferred,
            key_id=str(key_id),
            key_hash=key_hash(key),
            request_id=request_id,
        ),
    )
    if reason:
        after_commit(connection, telemetry.PersonNeeded(operation, reason, str(key_id)))


def after_commit(connection: BaseDatabaseWrapper, event: telemetry.Event) -> None:
    """Emit the event once the open transaction is committed; never, where it is rolled back."""
    transaction.on_commit(lambda: telemetry.emit(event), using=connection.alias)


def key_hash(key: str) -> str:
    """Return what stands for a key in logs and traces: it tells two keys apart, and can be made again from the key."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def settled_parameters(key_id: uuid.UUID, token: int, settlement: Settlement) -> dict[str, Any]:
    """Return the parameters of `SETTLED`, and of the key that is settled."""
    return {
        "id": key_id,
        "token": token,
        "by": storable.text(settlement.by)[:150],
        "evidence": storable.as_json(settlement.evidence),
    }


def answer_parameters(answer: Answer) -> dict[str, Any]:
    """Return the parameters of the columns that hold an answer."""
    return {
        "status": answer.status,
        "body": None if answer.body is None else sealing.seal(answer.body),
        "content_type": answer.content_type[:100],
        "headers": json.dumps(dict(answer.headers)),
        "note": answer.note,
    }


def _role(by: str) -> str:
    """Return the kind of whoever settled: names of people and callers are no labels."""
    if by in _ROLES:
        return by
    return "caller" if by.startswith("caller ") else "staff"
