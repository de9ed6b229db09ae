"""Requests whose answers were lost at once and whose effects are still to come."""

from __future__ import annotations

import json
from dataclasses import dataclass

from payments.simulator.record.store import Tx
from payments.simulator.wire.http import Request


@dataclass(frozen=True)
class Postponed:
    """A request to carry out, admitted when it was received."""

    seq: int
    request: Request


def postpone(tx: Tx, *, request: Request, key: str | None, due: float) -> None:
    """Keep a request until `due`; its honoured key stays in use until then."""
    kept = {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "idempotency_key": request.idempotency_key,
        "body": request.body.decode(),
    }
    tx.write("INSERT INTO late (due, key, request) VALUES (?, ?, ?)", due, key, json.dumps(kept))


def due(tx: Tx) -> list[Postponed]:
    """Return what is to be carried out now, oldest first."""
    rows = tx.rows("SELECT seq, request FROM late WHERE due <= ? ORDER BY due, seq", tx.now)
    return [Postponed(row["seq"], _request(row["request"])) for row in rows]


def drop(tx: Tx, seq: int | None) -> None:
    """Forget a postponed request, in the transaction that carries it out; None is none."""
    if seq is not None:
        tx.write("DELETE FROM late WHERE seq = ?", seq)


def _request(kept: str) -> Request:
    values = json.loads(kept)
    key = values["idempotency_key"]
    return Request(
        values["method"],
        values["path"],
        values["query"],
        {} if key is None else {"idempotency-key": key},
        keep_alive=False,
        body=values["body"].encode(),
    )
