"""The gateway's objects and its effects: money that really moved, one row per movement."""

from __future__ import annotations

import json
import secrets
from typing import Literal

from payments.simulator.record.requests import reference_of
from payments.simulator.record.store import Tx
from payments.simulator.wire.http import Json

EffectKind = Literal["charge", "refund", "payout"]

_ID_BYTES = 12


def new_id(prefix: str) -> str:
    """Return a new id in Stripe's form, for example `pi_…`."""
    return f"{prefix}_{secrets.token_hex(_ID_BYTES)}"


def save(tx: Tx, thing: Json, *, idempotency_key: str | None) -> None:
    """Write an object, new or changed, and the key of the request that last changed it."""
    tx.write(
        "INSERT INTO objects (id, object, at, reference, idempotency_key, body)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " reference = excluded.reference, idempotency_key = excluded.idempotency_key,"
        " body = excluded.body",
        thing["id"], thing["object"], tx.now, reference_of(thing), idempotency_key,
        json.dumps(thing),
    )  # fmt: skip


def find(tx: Tx, object_id: str, *, object_type: str | None = None) -> Json | None:
    """Return an object by its id, or None: unknown, or of another type."""
    row = tx.row("SELECT object, body FROM objects WHERE id = ?", object_id)
    if row is None or object_type not in (None, row["object"]):
        return None
    found: Json = json.loads(row["body"])
    return found


def key_of(tx: Tx, object_id: str) -> str | None:
    """Return the idempotency key of the request that last changed an object."""
    row = tx.row("SELECT idempotency_key FROM objects WHERE id = ?", object_id)
    return row["idempotency_key"] if row else None


def move_money(tx: Tx, thing: Json, *, kind: EffectKind, amount: int, key: str | None) -> None:
    """Record that an object's money has moved; an object moves it once only."""
    tx.write(
        "INSERT INTO effects (id, kind, amount, currency, reference, idempotency_key, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        thing["id"], kind, amount, thing["currency"], reference_of(thing), key, tx.now,
    )  # fmt: skip


def all_effects(tx: Tx) -> list[Json]:
    """Return `[{id, kind, amount, currency, reference, idempotency_key, at}]`, oldest first."""
    rows = tx.rows(
        "SELECT id, kind, amount, currency, reference, idempotency_key, at FROM effects"
        " ORDER BY seq"
    )
    return [dict(row) for row in rows]


def unfinished(tx: Tx, *, created_before: float) -> list[str]:
    """Return the ids of what is processing or pending since before a moment."""
    rows = tx.rows(
        "SELECT id FROM objects WHERE json_extract(body, '$.status') IN ('processing', 'pending')"
        " AND object IN ('payment_intent', 'refund', 'payout') AND at <= ? ORDER BY seq",
        created_before,
    )
    return [row["id"] for row in rows]
