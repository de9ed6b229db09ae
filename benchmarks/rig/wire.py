"""Count what a client asks of PostgreSQL, on the wire and thus whatever its driver.

    with Meter(host, port) as meter:
        ...  # connect to meter.port instead, without TLS
        meter.counts

A *round trip* is one ReadyForQuery: the client sent something and waited for it. A *statement* is one CommandComplete
that is not transaction control. A *commit* is a COMMIT, or a write outside of a transaction.

Source: PostgreSQL documentation, "Frontend/Backend Protocol", message formats.
"""

import contextlib
import socket
import threading
from dataclasses import asdict, dataclass
from typing import Self

_CONTROL = {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"}
_WRITES = {"INSERT", "UPDATE", "DELETE", "MERGE"}
_HEADER = 5


@dataclass(frozen=True)
class Counts:
    """What was asked."""

    round_trips: int = 0
    statements: int = 0
    commits: int = 0

    def __sub__(self, other: "Counts") -> "Counts":
        mine, theirs = asdict(self), asdict(other)
        return Counts(**{name: mine[name] - theirs[name] for name in mine})


class Meter:
    """A TCP proxy in front of PostgreSQL that passes everything on and counts the answers."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._counts = Counts()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where clients connect to."""
        port: int = self._server.getsockname()[1]
        return port

    @property
    def counts(self) -> Counts:
        """What was counted since the start, over all connections."""
        with self._lock:
            return self._counts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._server, *self._open):
            _end(one)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open += [client, server]
            threading.Thread(target=_pass_on, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        kept, tags = b"", list[str]()
        while data := _received(server):
            kept = self._read(kept + data, tags)
            # Counted before it is passed on: who has the answer sees it counted.
            if not _sent(client, data):
                break
        _end(client)

    def _read(self, data: bytes, tags: list[str]) -> bytes:
        """Count the whole messages; return the beginning of the next one."""
        at = 0
        while len(data) - at >= _HEADER:
            end = at + 1 + int.from_bytes(data[at + 1 : at + _HEADER])
            if end > len(data):
                break
            kind, body = data[at : at + 1], data[at + _HEADER : end]
            if kind == b"C":
                tags.append(body.split(b"\0")[0].decode().split(" ")[0])
            elif kind == b"Z":
                self._count(tags, outside=body == b"I")
                tags.clear()
            at = end
        return data[at:]

    def _count(self, tags: list[str], *, outside: bool) -> None:
        alone = outside and not _CONTROL.intersection(tags) and bool(_WRITES.intersection(tags))
        with self._lock:
            now = self._counts
            self._counts = Counts(
                now.round_trips + 1,
                now.statements + sum(tag not in _CONTROL for tag in tags),
                now.commits + tags.count("COMMIT") + alone,
            )


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    while data := _received(one):
        if not _sent(other, data):
            break
    _end(other)


def _end(one: socket.socket) -> None:
    """Hang up now: `close` alone would wait for the thread that still listens to it."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


def _sent(other: socket.socket, data: bytes) -> bool:
    try:
        other.sendall(data)
    except OSError:
        return False
    return True
