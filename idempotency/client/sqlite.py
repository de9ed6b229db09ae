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
from idempotency.client.errors import IntentsUnavailable
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
    loose INTEGER NOT NULL DEFAULT 0, shared INTEGER NOT NULL DEFAULT 0,
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

    Raises:
        OSError: the file cannot be made or written by us.
        IntentsUnavailable: it is no file of intents, or see there; so does every method.
    """

    def __init__(self, path: str | Path, *, patience: float = 5.0) -> None:
        # Whole, so that the process may go to another folder; and never made again: names would get new keys.
        self._path, self._patience = Path(path).absolute(), patience
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        self._uri = f"{self._path.as_uri()}?mode=rw"
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
            db.execute(
                "UPDATE intents SET shared = 1 WHERE name = ? AND status IS NULL AND NOT shared",
                [name],
            )
        require_same(known, request)
        return known

    def settle(self, *, name: str, key: str, answer: Answer) -> None:
        """Keep the final answer; the first one stays."""
        headers = {each: answer.headers[each] for each in KEPT_HEADERS if each in answer.headers}
        with self._writing() as db:
            db.execute(
                "UPDATE intents SET answered_at = ?, status = ?, headers = ?, answer = ?, loose = 0"
                " WHERE name = ? AND key = ? AND status IS NULL",
                [time.time(), answer.status, json.dumps(headers), answer.body, name, key],
            )

    def loosen(self, *, name: str, key: str) -> bool:
        """Let the next call bring another request, under the same key, unless another call has got the intent."""
        with self._writing() as db:
            loosened = db.execute(
                "UPDATE intents SET loose = 1 WHERE name = ? AND key = ? AND status IS NULL AND NOT shared",
                [name, key],
            )
            return bool(loosened.rowcount)

    def renew(self, *, name: str) -> None:
        """Forget the key, so that the next call makes a new one. Raises: NotRenewable."""
        with self._writing() as db:
            row = db.execute("SELECT * FROM intents WHERE name = ?", [name]).fetchone()
            require_renewable(name, _intent(row).answer if row else None)
            db.execute("DELETE FROM intents WHERE name = ?", [name])

    def unanswered(self) -> list[Intent]:
        """Return what was begun and has no final answer, the oldest first; each to be sent by one more call."""
        with self._writing() as db:
            rows = db.execute(
                "UPDATE intents SET shared = 1 WHERE status IS NULL AND NOT loose RETURNING *"
            ).fetchall()
        return sorted(map(_intent, rows), key=lambda intent: (intent.begun_at, intent.name))

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
        try:
            # A connection per use: one is bound to its thread, and must not cross a fork. Closed before its COMMIT, it
            # rolls back.
            with closing(
                sqlite3.connect(self._uri, uri=True, timeout=self._patience, isolation_level=None)
            ) as db:
                db.row_factory = sqlite3.Row
                # The key must be on disk before its request leaves, and so must the end of the journal's file: found
                # again after a loss of power, it would undo the commit. Source: SQLite, "PRAGMA synchronous", EXTRA.
                db.execute("PRAGMA synchronous = EXTRA")
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise IntentsUnavailable(f"{self._path}: {error}") from error


def _columns(request: Request) -> tuple[str, str, str, bytes]:
    return request.method, request.path, request.content_type, request.body


def _intent(row: sqlite3.Row) -> Intent:
    answer = None
    if row["status"] is not None:
        answer = Answer(row["status"], json.loads(row["headers"]), row["answer"], remembered=True)
    request = Request(row["method"], row["path"], row["body"], row["content_type"])
    return Intent(row["name"], row["key"], request, row["begun_at"], answer=answer)
