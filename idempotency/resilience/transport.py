"""An HTTP client that keeps an attempt's deadline, and knows whether a byte may have left.

No Python client ends a peer that drips one byte at a time: their timeouts are per socket operation.
Here every operation, the look-up of the name included, gets what is left of the attempt.
"""

import ipaddress
import os
import select
import socket
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Thread
from typing import Any

from idempotency.resilience.attempt import current_attempt

try:
    import httpcore2
    import httpx2
except ImportError as error:
    raise ImportError("the HTTP client needs httpx2: install the extra `http`") from error


class AddressRefused(OSError):
    """The host has no address that may be connected to."""


SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


def http_client(
    *,
    base_url: str = "",
    timeout: float = 5.0,
    connect_timeout: float = 2.0,
    connections: int = 32,
    idle_seconds: float = 4.0,
    verify: ssl.SSLContext | bool = True,
    headers: dict[str, str] | None = None,
    admits: Callable[[str], bool] | None = None,
) -> httpx2.Client:
    """Return a client to make the one request of an attempt with; safe to share between threads.

    Inside a guarded call each operation ends with the attempt, and the attempt is told when the
    request begins to leave. `timeout` in seconds bounds an operation (not the whole) where there is
    no attempt, and is an upper limit where there is one. It never retries, follows no redirects and
    reads no proxy from the environment.

    A process that was forked opens connections of its own.

    `idle_seconds` should be shorter than the peer's keep-alive, so that a connection is not closed
    by the peer at the moment a request leaves on it.

    `admits` says of an IP address whether it may be connected to, for addresses that others name:
    it is asked about what the name means now, and that very address is connected to. A host without
    an admitted address fails to connect.
    """
    limits = httpx2.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=idle_seconds,
    )
    return httpx2.Client(
        base_url=base_url,
        timeout=httpx2.Timeout(timeout, connect=connect_timeout),
        transport=_Transport(limits=limits, verify=verify, admits=admits),
        headers=headers,
        trust_env=False,
        follow_redirects=False,
    )


class _Transport(httpx2.BaseTransport):
    """httpx2's own transport, over a network that knows the attempt; each process has one of its own."""

    def __init__(
        self,
        *,
        limits: httpx2.Limits,
        verify: ssl.SSLContext | bool,
        admits: Callable[[str], bool] | None,
    ) -> None:
        self._limits, self._verify, self._admits = limits, verify, admits
        self._pid, self._own = os.getpid(), self._opened()

    def _opened(self) -> httpx2.HTTPTransport:
        opened = httpx2.HTTPTransport(
            verify=self._verify, limits=self._limits, retries=0, trust_env=False
        )
        # The pool takes a network backend, the transport does not pass one on: a private
        # attribute, so a test holds that requests really go through it.
        opened._pool._network_backend = _Network(self._admits)  # noqa: SLF001
        return opened

    def close(self) -> None:
        self._own.close()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._pid != os.getpid():
            # The connections are those of the process that was forked: it would read our answers,
            # and we its. Whole before another thread can see it: else it would admit any address.
            self._own, self._pid = self._opened(), os.getpid()
        attempt = current_attempt()
        if attempt is not None:
            if attempt.bytes_may_have_left is None:
                attempt.bytes_may_have_left = False
            if attempt.deadline.expired:
                raise httpx2.ConnectTimeout("no time left for this attempt", request=request)
            timeouts = request.extensions.get("timeout", {})
            # Waiting for a connection of the pool is no socket operation: it is limited here.
            request.extensions["timeout"] = timeouts | {"pool": _left(timeouts.get("pool"))}
        return self._own.handle_request(request)


def _left(timeout: float | None) -> float | None:
    """Return the timeout, or what is left of the attempt where that is less; 0 when it is over."""
    attempt = current_attempt()
    if attempt is None:
        return timeout
    return attempt.timeout if timeout is None else min(timeout, attempt.timeout)


class _Network(httpcore2.NetworkBackend):
    """Opens connections within the time left, to addresses that are admitted."""

    def __init__(self, admits: Callable[[str], bool] | None) -> None:
        self._admits = admits

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            sock = _connect(host, port, timeout, local_address, self._admits)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        for option in socket_options or ():
            sock.setsockopt(*option)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _Stream(sock)


def _connect(
    host: str,
    port: int,
    timeout: float | None,
    local_address: str | None,
    admits: Callable[[str], bool] | None,
) -> socket.socket:
    source = None if local_address is None else (local_address, 0)
    failed: OSError = OSError(f"no address for {host}")
    for address in _addresses(host, port, _left(timeout)):
        if admits is not None and not admits(address):
            failed = AddressRefused(f"{host} is at an address that is not connected to")
            continue
        left = _left(timeout)
        if left is not None and left <= 0:
            raise TimeoutError("no time left to connect")
        try:
            return socket.create_connection((address, port), left, source_address=source)
        except OSError as error:
            failed = error
    raise failed


def _addresses(host: str, port: int, timeout: float | None) -> list[str]:
    """Return the host's addresses, or raise TimeoutError when the resolver takes too long.

    The system's resolver cannot be interrupted, so it is asked in a thread that may be left behind.
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return [host]
    answer: Future[list[str]] = Future()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            answer.set_exception(error)
        except UnicodeError:
            # An empty label, or one of more than 63 characters: Python encodes the name before it asks.
            answer.set_exception(OSError(f"{host} is no name of a host"))
        else:
            answer.set_result([str(address[0]) for *_, address in found])

    Thread(target=look_up, daemon=True, name=f"resolve {host}").start()
    try:
        return answer.result(timeout)
    except FutureTimeout as error:
        raise TimeoutError(f"no address for {host} in time") from error


class _Stream(httpcore2.NetworkStream):
    """A connection whose every operation ends with the attempt."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            self._limit(timeout)
            return self._socket.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        rest = memoryview(buffer)
        try:
            while rest:
                self._limit(timeout)
                attempt = current_attempt()
                if attempt is not None:
                    attempt.bytes_may_have_left = True
                rest = rest[self._socket.send(rest) :]
        except TimeoutError as error:
            raise httpcore2.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.WriteError(str(error)) from error

    def _limit(self, timeout: float | None) -> None:
        left = _left(timeout)
        if left is not None and left <= 0:
            raise TimeoutError("no time left for this attempt")
        self._socket.settimeout(left)

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        # Python keeps one deadline over a whole handshake, so a dripping peer ends here as well.
        try:
            self._limit(timeout)
            return _Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname))
        except TimeoutError as error:
            self.close()
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            self.close()
            raise httpcore2.ConnectError(str(error)) from error

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        if info == "socket":
            return self._socket
        if info == "ssl_object" and isinstance(self._socket, ssl.SSLSocket):
            return self._socket
        if info == "client_addr":
            return self._socket.getsockname()
        if info == "server_addr":
            return self._socket.getpeername()
        if info == "is_readable":
            return _is_readable(self._socket)
        return None


def _is_readable(sock: socket.socket) -> bool:
    """Return whether an idle connection has something to read: the peer has closed it."""
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
