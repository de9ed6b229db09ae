"""Requests and answers as values, and an answer's bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

Json = dict[str, Any]

JSON_TYPE = "application/json"


class Malformed(Exception):
    """These bytes are not a request that this server reads."""


@dataclass(frozen=True)
class Request:
    """One request as received. Header names are in lower case; `path` carries no query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    keep_alive: bool
    body: bytes = b""

    @property
    def idempotency_key(self) -> str | None:
        """Return the Idempotency-Key header as sent."""
        return self.headers.get("idempotency-key")

    @property
    def content_length(self) -> int:
        """Return the announced length of the body.

        Raises:
            Malformed: the length is not a number, or the body is chunked.
        """
        if "transfer-encoding" in self.headers:
            raise Malformed("send a Content-Length: chunked requests are not read here")
        announced = self.headers.get("content-length", "0")
        if not (announced.isascii() and announced.isdigit()):
            raise Malformed(f"Content-Length is not a number: {announced!r}")
        return int(announced)

    def with_body(self, body: bytes) -> Request:
        """Return the same request, its body read."""
        return replace(self, body=body)


@dataclass(frozen=True)
class Answer:
    """One answer before it is framed."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = field(default=())

    def adding(self, *headers: tuple[str, str]) -> Answer:
        """Return the same answer with further header lines."""
        return replace(self, headers=self.headers + headers)


class Framing(Enum):
    """How an answer's length is told to the client."""

    TRUE = "Content-Length is the body's length"
    SHORT = "Content-Length is half the body's length"
    LONG = "Content-Length is twice the body's length"
    CHUNKED = "one chunk, without the closing one"
    NONE = "the body alone: no status line, no headers"


def json_answer(status: int, content: object, *headers: tuple[str, str]) -> Answer:
    """Return an answer that carries JSON, laid out as Stripe lays it out."""
    return Answer(status, json.dumps(content, indent=2).encode(), headers=headers)


def read_head(head: bytes) -> Request:
    """Read a request's head, from the request line to the last header line.

    Raises:
        Malformed: this is not an HTTP/1.x request.
    """
    line, *header_lines = head.decode("latin-1").split("\r\n")
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise Malformed(f"not an HTTP/1.x request line: {line[:100]!r}")
    method, target, version = parts
    if not target.startswith("/"):
        raise Malformed(f"not a path: {target[:100]!r}")
    headers = dict(_header(header_line) for header_line in header_lines if header_line)
    path, _, query = target.partition("?")
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if version != "HTTP/1.0" else connection == "keep-alive"
    return Request(method, unquote(path), query, headers, keep_alive)


def frame(answer: Answer, *, framing: Framing, keep_alive: bool) -> tuple[bytes, bytes]:
    """Return an answer's head and body as they go on the wire."""
    if framing is Framing.NONE:
        return b"", answer.body
    body = answer.body
    if framing is Framing.CHUNKED:
        body = b"%x\r\n%s\r\n" % (len(body), body)
    lines = [
        ("Server", "payments-simulator"),
        ("Date", formatdate(usegmt=True)),
        ("Content-Type", answer.content_type),
        _length(len(answer.body), framing),
        ("Connection", "keep-alive" if keep_alive else "close"),
        *answer.headers,
    ]
    head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in lines)
    return head.encode() + b"\r\n", body


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or name != name.strip() or {"\r", "\n", "\0"} & set(line):
        raise Malformed(f"not a header line: {line[:100]!r}")
    return name.lower(), value.strip()


def _length(true_length: int, framing: Framing) -> tuple[str, str]:
    told = {
        Framing.TRUE: true_length,
        Framing.SHORT: true_length // 2,
        Framing.LONG: true_length * 2,
    }
    if framing in told:
        return "Content-Length", str(told[framing])
    return "Transfer-Encoding", "chunked"
