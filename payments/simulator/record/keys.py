"""Idempotency keys as Stripe keeps them.

The answer to the first request that began under a key is remembered, whether it succeeded or not,
and given again. Requests that never began (busy, unauthorised, unreadable, malformed) leave the
key free. Source: Stripe's API reference, "Idempotent requests" and "Advanced error handling".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from payments.simulator.record.store import Row, Store, Tx
from payments.simulator.wire.http import Answer, Json


@dataclass(frozen=True)
class Fresh:
    """The key is free and now belongs to this request, until `release`."""


@dataclass(frozen=True)
class Replay:
    """The key has an answer already."""

    answer: Answer


@dataclass(frozen=True)
class Reused:
    """The key was used with other parameters or another path."""


@dataclass(frozen=True)
class InUse:
    """Another request with this key is under way, or its effect is still to come."""


Claimed = Fresh | Replay | Reused | InUse


class Keys:
    """Which keys are in use now. Only memory: a process that dies leaves no request under way."""

    def __init__(self, store: Store) -> None:
        """Stand on the store, whose transactions also guard the set of keys in use."""
        self._store = store
        self._in_use: dict[str, int] = {}

    def claim(
        self, *, key: str, epoch: int, fingerprint: str, ttl: float, late: int | None = None
    ) -> Claimed:
        """Claim a key for one request.

        Args:
            key: as sent by the client.
            epoch: the one in which the request was received.
            fingerprint: see `fingerprint`.
            ttl: seconds after which a remembered answer is forgotten.
            late: the number of the late request that is now carried out, which holds the key.
        """
        with self._store.transaction() as tx:
            known = tx.row("SELECT * FROM keys WHERE key = ? AND at > ?", key, tx.now - ttl)
            if known is not None:
                return _known(known, fingerprint=fingerprint)
            waiting = tx.row("SELECT seq FROM late WHERE key = ? AND seq IS NOT ?", key, late)
            if self._in_use.get(key) == epoch or waiting is not None:
                return InUse()
            self._in_use[key] = epoch
            return Fresh()

    def release(self, key: str, *, epoch: int) -> None:
        """End a request's use of its key; what was remembered stays."""
        with self._store.transaction():
            if self._in_use.get(key) == epoch:
                del self._in_use[key]


def remember(tx: Tx, *, key: str, fingerprint: str, request_id: str, answer: Answer) -> None:
    """Remember an answer under its key, in the transaction that applies the effect."""
    tx.write(
        "INSERT OR REPLACE INTO keys (key, fingerprint, at, request_id, status, body)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        key, fingerprint, tx.now, request_id, answer.status, answer.body,
    )  # fmt: skip


def fingerprint(*, path: str, params: Json) -> str:
    """Return a digest of the path and the parameters, whatever their order."""
    canonical = json.dumps([path, params], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _known(row: Row, *, fingerprint: str) -> Replay | Reused:
    if row["fingerprint"] != fingerprint:
        return Reused()
    answer = Answer(row["status"], row["body"])
    replayed = (("Idempotent-Replayed", "true"), ("Original-Request", row["request_id"]))
    return Replay(answer.adding(*replayed))
