"""Intents in a file that survives the process: SQLite, of the standard library, with every commit on disk."""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from idempotency.client.answer import KEPT_HEADERS, Answer
from idempotency.client.intents import (
    Intent,
    Request,
    new_key,
    require_name,
    require_renewable,
    require_same,
)

_TABLE = """
CREATE TABLE IF NOT EXISTS intents (
    name TEXT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    begun_at REAL NOT NULL,
    loose INTEGER NOT NULL DEFAULT 0,
    method TEXT NOT NULL, path TEXT NOT NULL, content_type TEXT NOT NULL, body BLOB NOT NULL,
    answered_at REAL, status INTEGER, headers TEXT, answer BLOB
) STRICT
"""


class SqliteIntents:
    """Intents in one file, for any number of threads and processes of one machine.

    The file holds the bodies of requests and answers: it is made readable for its owner only.

    Args:
        path: the file; made when it is not there.
        patience: seconds to wait for another process that writes.
    """

    def __init__(self, path: str | Path, *, patience: float = 5.0) -> None:
        self._path, self._patience = Path(path), patience
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        with self._writing() as db:
            db.execute(_TABLE)

    def begin(self, *, name: str, request: Request) -> Intent:
        """Return the intent of that name; with a new key only where there is none yet."""
        require_name(name)
        with self._writing() as db:
            row = db.execute("SELECT * FROM intents WHERE name = ?", [name]).fetchone()
            if row is None:
                made = Intent(name, new_key(), request, time.time(), fresh=True)
                db.execute(
                    "INSERT INTO intents (name, key, begun_at, method, path, content_type, body)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [name, made.key, made.begun_at, *_columns(request)],
                )
                return made
            known = _intent(row)
            if row["loose"]:
                found = replace(known, request=request, begun_at=time.time(), fresh=True)
                db.execute(
                    "UPDATE intents SET loose = 0, begun_at = ?, method = ?, path = ?, content_type = ?, body = ?"
                    " WHERE name = ?",
                    [found.begun_at, *_columns(request), name],
                )
                return found
        require_same(known, request)
        return known

    def settle(self, *, name: str, key: str, answer: Answer) -> None:
        """Keep the final answer."""
        headers = {each: answer.headers[each] for each in KEPT_HEADERS if each in answer.headers}
        with self._writing() as db:
            db.execute(
                "UPDATE intents SET answered_at = ?, status = ?, headers = ?, answer = ?, loose = 0"
                " WHERE name = ? AND key = ?",
                [time.time(), answer.status, json.dumps(headers), answer.body, name, key],
            )

    def loosen(self, *, name: str, key: str) -> None:
        """Let the next call bring another request, under the same key."""
        with self._writing() as db:
            db.execute(
                "UPDATE intents SET loose = 1 WHERE name = ? AND key = ? AND status IS NULL",
                [name, key],
            )

    def renew(self, *, name: str) -> None:
        """Forget the key, so that the next call makes a new one. Raises: NotRenewable."""
        with self._writing() as db:
            row = db.execute("SELECT * FROM intents WHERE name = ?", [name]).fetchone()
            require_renewable(name, _intent(row).answer if row else None)
            db.execute("DELETE FROM intents WHERE name = ?", [name])

    def unanswered(self) -> list[Intent]:
        """Return what was begun and has no final answer, the oldest first."""
        with self._writing() as db:
            rows = db.execute(
                "SELECT * FROM intents WHERE status IS NULL AND NOT loose ORDER BY begun_at, name"
            )
            return [_intent(row) for row in rows]

    def purge(self, *, older_than: float) -> int:
        """Forget what was answered more than so many seconds ago; return how many.

        A name that is forgotten is free: calling with it again is a new operation.
        """
        with self._writing() as db:
            gone = db.execute(
                "DELETE FROM intents WHERE answered_at < ?", [time.time() - older_than]
            )
            return gone.rowcount

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        # A connection per use: one is bound to its thread, and must not cross a fork.
        with closing(
            sqlite3.connect(self._path, timeout=self._patience, isolation_level=None)
        ) as db:
            db.row_factory = sqlite3.Row
            # The default of a build may be less: the key must be on disk before its request leaves.
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")


def _columns(request: Request) -> tuple[str, str, str, bytes]:
    return request.method, request.path, request.content_type, request.body


def _intent(row: sqlite3.Row) -> Intent:
    answer = None
    if row["status"] is not None:
        answer = Answer(row["status"], json.loads(row["headers"]), row["answer"], remembered=True)
    request = Request(row["method"], row["path"], row["body"], row["content_type"])
    return Intent(row["name"], row["key"], request, row["begun_at"], answer=answer)
