"""Receive events: verify the signature over the raw body, take each webhook-id in once, answer at once.

WEBHOOK_SECRET=whsec_… python receive.py <port> <file of the ids>
"""

import base64
import hmac
import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 300  # seconds between their clock and ours


def verify(secret: str, headers: Message | dict[str, str], body: bytes) -> str:
    """Return the webhook-id of what the sender has signed. Raises: ValueError, for anything else."""
    webhook_id, stamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(stamp)) > TOLERANCE:
        raise ValueError("too old, or from the future: it may be a replay")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{webhook_id}.{stamp}.".encode() + body, "sha256")
    expected = "v1," + base64.b64encode(digest).decode()
    # Several while a secret is being replaced; any of them will do.
    signatures = headers["webhook-signature"].split()
    if not any(hmac.compare_digest(one.encode(), expected.encode()) for one in signatures):
        raise ValueError("not signed with our secret")
    return webhook_id


def take_in(database: sqlite3.Connection, webhook_id: str, event: dict[str, str]) -> None:
    """Do what the event is for, once: its id and its effect are committed together, or neither is."""
    with database:
        new = database.execute(
            "INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING", [webhook_id]
        ).rowcount
        if new:
            database.execute("INSERT INTO effects VALUES (?)", [event["type"]])


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 once the event is safe here, so that it is not sent again."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            webhook_id = verify(os.environ["WEBHOOK_SECRET"], self.headers, body)
        except (KeyError, TypeError, ValueError):
            self.send_error(400)
            return
        with closing(sqlite3.connect(sys.argv[2])) as database:
            take_in(database, webhook_id, json.loads(body))
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    with closing(sqlite3.connect(sys.argv[2])) as made:
        made.executescript("CREATE TABLE seen (id PRIMARY KEY); CREATE TABLE effects (type)")
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
