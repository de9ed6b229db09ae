"""A loopback peer that fails in one chosen way at one chosen stage of an exchange.

Each `FaultServer` listens on a free port and counts the requests that reached it.
"""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

OK = b'{"id": "ch_1", "status": "succeeded"}'

Fault = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One accepted connection."""

    server: "FaultServer"
    socket: socket.socket

    def read_request(self) -> bytes:
        """Read one whole request, and count it; return b"" when the peer closed instead."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            chunk = self.socket.recv(65536)
            if not chunk:
                return b""
            raw += chunk
        head, _, body = raw.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            chunk = self.socket.recv(65536)
            if not chunk:
                break
            body += chunk
        self.server.count(head)
        return head + b"\r\n\r\n" + body

    def answer(
        self,
        body: bytes = OK,
        *,
        status: str = "200 OK",
        headers: str = "",
        length: int | None = None,
    ) -> None:
        """Send an answer; `headers` is raw, each line ended by CRLF."""
        size = len(body) if length is None else length
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {size}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + body)

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def hang(self) -> None:
        """Do nothing until the peer closes, or the server ends."""
        self.socket.settimeout(0.05)
        while not self.server.closing.is_set():
            try:
                if not self.socket.recv(65536):
                    return
            except TimeoutError:
                continue


@dataclass
class FaultServer:
    """Serves one fault until it is closed."""

    fault: Fault
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(512)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def count(self, head: bytes) -> None:
        with self._lock:
            self.requests.append(head)

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            with peer, contextlib.suppress(OSError):
                self.fault(Exchange(self, peer))
        finally:
            with self._lock:
                self.in_flight -= 1

    def close(self) -> None:
        self.closing.set()
        # Closing alone does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(5)


@contextlib.contextmanager
def serving(fault: Fault) -> Generator[FaultServer, None, None]:
    server = FaultServer(fault)
    try:
        yield server
    finally:
        server.close()


# -- faults by stage: while connecting, before an answer, in its head, in its body -------------------


def reset_at_once(exchange: Exchange) -> None:
    exchange.socket.recv(1)
    exchange.server.count(b"(first byte)")
    exchange.reset()


def stall_at_once(exchange: Exchange) -> None:
    """Accept, and read nothing: a request that fits the buffers still leaves."""
    exchange.server.closing.wait(30)


def eof_before_answer(exchange: Exchange) -> None:
    exchange.read_request()


def reset_before_answer(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.reset()


def stall_before_answer(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.hang()


def reset_in_head(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
    time.sleep(0.02)  # lets the peer read before the reset discards what was sent
    exchange.reset()


def stall_in_head(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
    exchange.hang()


def garbage_head(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.socket.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")


def reset_in_body(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.answer(OK[:10], length=1000)
    time.sleep(0.02)  # lets the peer read before the reset discards what was sent
    exchange.reset()


def stall_in_body(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.answer(OK[:10], length=1000)
    exchange.hang()


def short_body(exchange: Exchange) -> None:
    """Content-Length promises more than comes."""
    exchange.read_request()
    exchange.answer(OK, length=1000)


def long_body(exchange: Exchange) -> None:
    """Content-Length promises less than comes: what is read is no JSON."""
    exchange.read_request()
    exchange.answer(OK, length=10)


def truncated_chunks(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.socket.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"id"\r\n'
    )


def drip(exchange: Exchange) -> None:
    """Send one byte at a time, each well within any timeout per operation."""
    exchange.read_request()
    exchange.answer(b"", length=len(OK))
    for byte in OK:
        exchange.socket.sendall(bytes([byte]))
        if exchange.server.closing.wait(0.05):
            return


def html(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.answer(b"<html>proxy error</html>")


def success(exchange: Exchange) -> None:
    while exchange.read_request():
        exchange.answer()


def close_while_idle(exchange: Exchange) -> None:
    """Answer, promise to keep the connection, and close it."""
    exchange.read_request()
    exchange.answer()


def reset_on_reuse(exchange: Exchange) -> None:
    exchange.read_request()
    exchange.answer()
    if exchange.read_request():
        exchange.reset()


def status(line: str, *, headers: str = "", body: bytes = b'{"error": {}}') -> Fault:
    def fault(exchange: Exchange) -> None:
        while exchange.read_request():
            exchange.answer(body, status=line, headers=headers)

    return fault


# -- before a connection stands ----------------------------------------------------------------------


def refused_url() -> str:
    """Return an address of this machine where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


@contextlib.contextmanager
def blackhole() -> Generator[str, None, None]:
    """Give an address that answers no connection attempt: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(6):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def tls(certificate: str) -> Fault:
    """Serve TLS with this certificate (a PEM file with its key)."""

    def fault(exchange: Exchange) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        with context.wrap_socket(exchange.socket, server_side=True) as secured:
            success(Exchange(exchange.server, secured))

    return fault
