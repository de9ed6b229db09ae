"""A loopback server that answers each request with the next line of a script; the last line is repeated."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.faultserver import Exchange, FaultServer

Line = Callable[[Exchange], None] | tuple[int, dict[str, Any]] | tuple[int, dict[str, Any], str]
"""What is done to the exchange; or status, body, and header lines, each ended by CRLF."""


def problem(status: int, code: str, *, after: int | None = None, **members: Any) -> Line:
    """Return a line that answers with a problem, and Retry-After where `after` says so."""
    header = "" if after is None else f"Retry-After: {after}\r\n"
    return status, {"code": code, **members}, header


def lost(exchange: Exchange) -> None:
    """Take the request and break the connection."""
    exchange.read_request()
    exchange.reset()


class Script:
    """The lines, as a fault for `serving`."""

    def __init__(self, *lines: Line) -> None:
        self.lines = list(lines)

    def __call__(self, exchange: Exchange) -> None:
        line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        if callable(line):
            line(exchange)
            return
        status, body, headers = (*line, "")[:3]
        if exchange.read_request():
            exchange.answer(
                json.dumps(body).encode(),
                status=f"{status} Status",
                headers=f"{headers}Connection: close\r\n",
            )


def keys(server: FaultServer) -> list[str]:
    """Return the keys that arrived, in order."""
    wanted = re.compile(rb"^idempotency-key: *(.+?)\r?$", re.MULTILINE | re.IGNORECASE)
    found = (wanted.search(raw) for raw in server.requests)
    return [match[1].decode() for match in found if match is not None]
