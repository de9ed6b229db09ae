from __future__ import annotations

import pytest

from payments.simulator.wire.http import Answer, Framing, Malformed, frame, read_head


def test_a_head_is_read() -> None:
    request = read_head(b"GET /a%20b?c=d HTTP/1.1\r\nX-One: 1 \r\nIdempotency-Key: k")
    assert (request.method, request.path, request.query) == ("GET", "/a b", "c=d")
    assert request.headers["x-one"] == "1"
    assert request.idempotency_key == "k"
    assert request.content_length == 0


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"GET / HTTP/1.1", True),
        (b"GET / HTTP/1.1\r\nConnection: Close", False),
        (b"GET / HTTP/1.0", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive", True),
    ],
)
def test_a_connection_is_kept_as_http_says(head: bytes, keep_alive: bool) -> None:
    assert read_head(head).keep_alive is keep_alive


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET /",
        b"GET / HTTP/2",
        b"GET nowhere HTTP/1.1",
        b"GET / HTTP/1.1\r\nX : 1",
        b"GET / HTTP/1.1\r\nX: 1\nY: 2",
    ],
)
def test_what_is_no_head_is_refused(head: bytes) -> None:
    with pytest.raises(Malformed):
        read_head(head)


@pytest.mark.parametrize(
    ("framing", "line"),
    [
        (Framing.TRUE, b"Content-Length: 10\r\n"),
        (Framing.SHORT, b"Content-Length: 5\r\n"),
        (Framing.LONG, b"Content-Length: 20\r\n"),
        (Framing.CHUNKED, b"Transfer-Encoding: chunked\r\n"),
    ],
)
def test_the_length_is_told_as_asked(framing: Framing, line: bytes) -> None:
    head, body = frame(Answer(200, b"0123456789"), framing=framing, keep_alive=True)
    assert line in head
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert head.endswith(b"\r\n\r\n")
    assert body == (b"a\r\n0123456789\r\n" if framing is Framing.CHUNKED else b"0123456789")


def test_garbage_has_no_head() -> None:
    assert frame(Answer(200, b"x"), framing=Framing.NONE, keep_alive=True) == (b"", b"x")
