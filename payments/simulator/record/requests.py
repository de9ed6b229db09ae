"""The log of requests received, in order, each with the status that was sent."""

from __future__ import annotations

from typing import Any

from payments.simulator.record.store import Tx
from payments.simulator.wire.http import Json

_MAX_AMOUNT = 2**63 - 1


def write_down(
    tx: Tx,
    *,
    method: str,
    path: str,
    idempotency_key: str | None,
    reference: str | None,
    amount: int | None,
) -> int:
    """Record a request on arrival, no status yet; return its number."""
    return tx.write(
        "INSERT INTO requests (at, method, path, idempotency_key, reference, amount)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        tx.now, method, path, idempotency_key, reference, amount,
    )  # fmt: skip


def note_status(tx: Tx, *, seq: int, status: int | None) -> None:
    """Record the status about to be sent, or None: no status line left this server."""
    tx.write("UPDATE requests SET status = ? WHERE seq = ?", status, seq)


def all_requests(tx: Tx) -> list[Json]:
    """Return every request: `{at, method, path, idempotency_key, reference, amount, status}`."""
    rows = tx.rows(
        "SELECT at, method, path, idempotency_key, reference, amount, status"
        " FROM requests ORDER BY seq"
    )
    return [dict(row) for row in rows]


def reference_of(params: Json) -> str | None:
    """Return our reference in the parameters' metadata, where there is one."""
    metadata: Any = params.get("metadata")
    reference = metadata.get("reference") if isinstance(metadata, dict) else None
    return reference if isinstance(reference, str) else None


def amount_of(params: Json) -> int | None:
    """Return the parameters' amount, where there is one and it is a whole number."""
    text = params.get("amount")
    if not isinstance(text, str) or not (text.isascii() and text.isdigit()) or len(text) > 18:
        return None
    return min(int(text), _MAX_AMOUNT)
