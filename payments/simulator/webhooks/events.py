"""Events in Stripe's shape, and their deliveries: rows written with the change they tell of."""

from __future__ import annotations

import json
from typing import Any

from payments.simulator.config import Config
from payments.simulator.record.books import new_id
from payments.simulator.record.store import Row, Tx
from payments.simulator.wire.http import Json

API_VERSION = "2026-10-28.endive"

# How long a reordered event waits for others to be sent before it.
REORDERING_SECONDS = 0.5

_COPIES = {"off": 0, "once": 1, "twice": 2, "reordered": 1, "before-answer": 1}


def write_event(
    tx: Tx, *, config: Config, event_type: str, thing: Json, request_id: str | None, key: str | None
) -> list[int]:
    """Record an event and the deliveries that the configured mode asks for; return their numbers.

    Args:
        tx: the transaction of the change that the event tells of.
        config: gives mode, address and timeout.
        event_type: for example `payment_intent.succeeded`.
        thing: the object as changed.
        request_id: of the request that changed it, if any.
        key: that request's idempotency key.
    """
    event: Json = {
        "id": new_id("evt"),
        "object": "event",
        "api_version": API_VERSION,
        "created": int(tx.now),
        "data": {"object": thing},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": request_id, "idempotency_key": key},
        "type": event_type,
    }
    tx.write(
        "INSERT INTO events (id, at, subject, body) VALUES (?, ?, ?, ?)",
        event["id"], tx.now, thing.get("payment_intent") or thing["id"],
        json.dumps(event, indent=2),
    )  # fmt: skip
    copies = _COPIES[config.webhook_mode] if config.webhook_url else 0
    return schedule(tx, config=config, event_id=event["id"], copies=copies)


def schedule(tx: Tx, *, config: Config, event_id: str, copies: int) -> list[int]:
    """Add deliveries of an event; each copy has a lane of its own, so that copies overlap."""
    mode = config.webhook_mode
    wait = {
        "reordered": REORDERING_SECONDS,
        # Sent by the request's own thread: the background takes over only if that one dies.
        "before-answer": config.webhook_timeout + config.webhook_backoff,
    }.get(mode, 0.0)
    return [
        tx.write(
            "INSERT INTO deliveries (event, lane, newest_first, due)"
            " SELECT id, subject || '/' || ?, ?, ? FROM events WHERE id = ?",
            copy, mode == "reordered", tx.now + wait, event_id,
        )
        for copy in range(copies)
    ]  # fmt: skip


def make_due(tx: Tx) -> int:
    """Make every event that was never accepted due now, in any mode; return how many."""
    tx.write("UPDATE deliveries SET due = ?, state = 'pending' WHERE state != 'delivered'", tx.now)
    tx.write(
        "INSERT INTO deliveries (event, lane, newest_first, due)"
        " SELECT id, subject || '/0', 0, ? FROM events"
        " WHERE id NOT IN (SELECT event FROM deliveries) ORDER BY seq",
        tx.now,
    )
    row = tx.row("SELECT count(*) AS waiting FROM deliveries WHERE state = 'pending'")
    return int(row["waiting"]) if row else 0


def body_of(tx: Tx, event_id: str) -> bytes | None:
    """Return an event's raw body, or None: there is no such event."""
    row = tx.row("SELECT body FROM events WHERE id = ?", event_id)
    return row["body"].encode() if row else None


def due_deliveries(tx: Tx) -> list[Row]:
    """Return the deliveries due now: `seq`, `lane`, `newest_first`; oldest first.

    A reordered lane is due as a whole, once its oldest event has waited long enough.
    """
    return tx.rows(
        "SELECT seq, lane, newest_first FROM deliveries WHERE state = 'pending' AND ("
        " due <= ? OR (newest_first AND lane IN ("
        "  SELECT lane FROM deliveries WHERE state = 'pending' AND newest_first AND due <= ?)))"
        " ORDER BY seq",
        tx.now, tx.now,
    )  # fmt: skip


def next_due(tx: Tx) -> float | None:
    """Return when the next delivery is due, or None: nothing waits."""
    row = tx.row("SELECT min(due) AS due FROM deliveries WHERE state = 'pending'")
    due: float | None = row["due"] if row else None
    return due


def payload(tx: Tx, delivery: int) -> bytes | None:
    """Return the raw body of a pending delivery, or None: it is settled or forgotten."""
    row = tx.row(
        "SELECT events.body FROM deliveries JOIN events ON events.id = deliveries.event"
        " WHERE deliveries.seq = ? AND state = 'pending'",
        delivery,
    )
    return row["body"].encode() if row else None


def record_attempt(tx: Tx, *, config: Config, delivery: int, status: int | None) -> None:
    """Record how a delivery went: accepted by any 2xx, else due again with a doubled pause."""
    accepted = status is not None and 200 <= status < 300
    row = tx.row("SELECT attempts FROM deliveries WHERE seq = ?", delivery)
    if row is None:
        return
    attempts = row["attempts"] + 1
    exhausted = attempts >= config.webhook_attempts
    state = "delivered" if accepted else "gave_up" if exhausted else "pending"
    pause = config.webhook_backoff * 2 ** (attempts - 1)
    tx.write(
        "UPDATE deliveries SET state = ?, attempts = ?, due = ?, status = ? WHERE seq = ?",
        state, attempts, tx.now + pause, status, delivery,
    )  # fmt: skip


def all_events(tx: Tx) -> list[Json]:
    """Return `[{id, type, object, at, deliveries: [{state, attempts, status}]}]`, oldest first."""
    deliveries: dict[str, list[Json]] = {}
    for row in tx.rows("SELECT event, state, attempts, status FROM deliveries ORDER BY seq"):
        told = {name: row[name] for name in ("state", "attempts", "status")}
        deliveries.setdefault(row["event"], []).append(told)
    return [
        _summary(row, deliveries.get(row["id"], []))
        for row in tx.rows("SELECT id, at, body FROM events ORDER BY seq")
    ]


def _summary(row: Row, deliveries: list[Json]) -> Json:
    event: Any = json.loads(row["body"])
    return {
        "id": row["id"],
        "type": event["type"],
        "object": event["data"]["object"]["id"],
        "at": row["at"],
        "deliveries": deliveries,
    }
