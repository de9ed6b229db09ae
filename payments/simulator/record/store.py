"""The SQLite file and its transactions.

One connection, one writer at a time: a transaction here is short and never waits for the network.
Every commit reaches the disk before it returns (WAL with synchronous=FULL), so that an answer
sent after it tells nothing but the truth, whatever dies next.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Clock = Callable[[], float]
Row = sqlite3.Row

_FILE = "simulator.sqlite3"
_TABLES = ("requests", "objects", "effects", "keys", "faults", "late", "config", "events",
           "deliveries")  # fmt: skip
_SCHEMA = """
CREATE TABLE IF NOT EXISTS requests (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, method TEXT NOT NULL,
    path TEXT NOT NULL, idempotency_key TEXT, reference TEXT, amount INTEGER, status INTEGER);
CREATE TABLE IF NOT EXISTS objects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, object TEXT NOT NULL,
    at REAL NOT NULL, reference TEXT, idempotency_key TEXT, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS objects_reference ON objects (object, reference);
CREATE INDEX IF NOT EXISTS objects_intent ON objects
    (object, json_extract(body, '$.payment_intent'));
CREATE INDEX IF NOT EXISTS objects_status ON objects (json_extract(body, '$.status'));
CREATE TABLE IF NOT EXISTS effects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('charge', 'refund', 'payout')),
    amount INTEGER NOT NULL CHECK (amount > 0), currency TEXT NOT NULL, reference TEXT,
    idempotency_key TEXT, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, at REAL NOT NULL, request_id TEXT NOT NULL,
    status INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS faults (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, kind TEXT NOT NULL,
    remaining INTEGER NOT NULL CHECK (remaining >= 0), seconds REAL NOT NULL,
    retry_after TEXT NOT NULL, match TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS faults_remaining ON faults (seq) WHERE remaining > 0;
CREATE TABLE IF NOT EXISTS late (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, due REAL NOT NULL, key TEXT, request TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS config (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL,
    subject TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, lane TEXT NOT NULL,
    newest_first INTEGER NOT NULL, due REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'gave_up')),
    status INTEGER);
CREATE INDEX IF NOT EXISTS deliveries_pending ON deliveries (due) WHERE state = 'pending';
"""


class DirectoryInUse(Exception):
    """Another process keeps its record in this directory."""


class RecordClosed(Exception):
    """The gateway is stopping: nothing more can be read or written."""


class Tx:
    """An open transaction, and the gateway's time at its beginning (seconds since 1970)."""

    def __init__(self, connection: sqlite3.Connection, *, now: float) -> None:
        """Wrap the one connection while its transaction is open."""
        self._connection = connection
        self.now = now

    def rows(self, sql: str, *params: Any) -> list[Row]:
        """Return all rows of a query."""
        return self._connection.execute(sql, params).fetchall()

    def row(self, sql: str, *params: Any) -> Row | None:
        """Return the first row of a query, or None."""
        first: Row | None = self._connection.execute(sql, params).fetchone()
        return first

    def write(self, sql: str, *params: Any) -> int:
        """Change rows; return the new row's number after an insert."""
        return self._connection.execute(sql, params).lastrowid or 0


class Store:
    """The record's file. `epoch` counts resets: what began in an earlier epoch writes nothing."""

    def __init__(self, directory: Path, *, clock: Clock) -> None:
        """Open or create the record in `directory`.

        Raises:
            DirectoryInUse: another process has it open.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._lock = threading.Lock()
        self._connection = _open(directory / _FILE)
        self._closed = False
        self.epoch = 0

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Open a transaction: committed to disk at the end, or rolled back by an exception.

        Raises:
            RecordClosed: after `close`.
        """
        with self._lock:
            if self._closed:
                raise RecordClosed
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield Tx(self._connection, now=self._clock())
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def forget_everything(self) -> None:
        """Empty every table and begin a new epoch."""
        with self.transaction() as tx:
            for table in _TABLES:
                tx.write(f"DELETE FROM {table}")
            self.epoch += 1

    def close(self) -> None:
        """Wait for the open transaction, then close the file."""
        with self._lock:
            self._closed = True
            self._connection.close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            raise DirectoryInUse(f"another process keeps its record in {path.parent}") from error
        raise
    return connection
