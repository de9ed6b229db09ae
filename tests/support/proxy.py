"""A TCP proxy in front of PostgreSQL that loses a COMMIT, or only its acknowledgement.

    with Proxy(host, port) as proxy:
        proxy.lose(nth=2, what="reply")

An interrupted COMMIT is ambiguous: the client sees a broken connection in both cases.
"""

import socket
import threading
from typing import Literal, Self

What = Literal["request", "reply"]


class Proxy:
    """Passes everything on, until a chosen COMMIT; then that connection is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._countdown = 0
        self._what: What = "reply"
        self._open: list[socket.socket] = []
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._server.getsockname()[1]
        return port

    def lose(self, *, nth: int, what: What) -> None:
        """Lose the nth COMMIT from now: its `request`, so that nothing commits, or its `reply`."""
        with self._lock:
            self._countdown, self._what = nth, what

    def close(self) -> None:
        self._server.close()
        _end(*self._open)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._open += [client, server]
            cut = threading.Event()
            for pump in (self._to_server, self._to_client):
                threading.Thread(target=pump, args=(client, server, cut), daemon=True).start()

    def _to_server(
        self, client: socket.socket, server: socket.socket, cut: threading.Event
    ) -> None:
        try:
            while data := client.recv(65536):
                what = self._loses(data)
                if what == "request":
                    break
                if what == "reply":
                    cut.set()
                server.sendall(data)
        except OSError:
            pass
        if not cut.is_set():
            _end(client, server)

    def _to_client(
        self, client: socket.socket, server: socket.socket, cut: threading.Event
    ) -> None:
        try:
            while data := server.recv(65536):
                if cut.is_set():
                    break
                client.sendall(data)
        except OSError:
            pass
        _end(client, server)

    def _loses(self, data: bytes) -> What | None:
        if b"COMMIT" not in data:
            return None
        with self._lock:
            self._countdown -= 1
            if self._countdown != 0:
                return None
            self.lost += 1
            return self._what


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
