"""The client at the other end of one connection, byte by byte."""

from __future__ import annotations

import select
import socket
import struct
import time

from payments.simulator.wire.http import Malformed

_MAX_HEAD = 64 * 1024
_MAX_BODY = 1024 * 1024
_CHUNK = 65536
_IDLE_SECONDS = 300.0
# Where the system can report "the peer hung up" by itself (Linux), unread bytes do not hide it.
_HUNG_UP: int = getattr(select, "POLLRDHUP", 0)


class PeerGone(Exception):
    """The client has closed or reset its connection."""


class Peer:
    """A connected client. Not shared between threads.

    `has_sent` tells whether anything was sent since the last request's head was read.
    """

    def __init__(self, connection: socket.socket) -> None:
        """Take over a connected socket."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(_IDLE_SECONDS)
        self._socket = connection
        self._unread = b""
        self.has_sent = False

    def read_head(self) -> bytes | None:
        """Read the next request up to its blank line; None when the client left before it.

        Raises:
            PeerGone: the client left in the middle of a head.
            Malformed: the head is too large.
        """
        self.has_sent = False
        while b"\r\n\r\n" not in self._unread:
            if len(self._unread) > _MAX_HEAD:
                raise Malformed("the request's head is too large")
            received = self._receive()
            if not received and not self._unread.strip():
                return None
            if not received:
                raise PeerGone
            self._unread += received
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        return head.lstrip(b"\r\n")

    def read_body(self, length: int) -> bytes:
        """Read exactly `length` bytes.

        Raises:
            PeerGone: the client left before it had sent them all.
            Malformed: the body is too large.
        """
        if length > _MAX_BODY:
            raise Malformed("the request's body is too large")
        while len(self._unread) < length:
            received = self._receive()
            if not received:
                raise PeerGone
            self._unread += received
        body, self._unread = self._unread[:length], self._unread[length:]
        return body

    def send(self, octets: bytes) -> None:
        """Send all of it.

        Raises:
            PeerGone: the client has left.
        """
        try:
            self._socket.sendall(octets)
        except OSError as error:
            raise PeerGone from error
        self.has_sent = True

    def stall(self, seconds: float) -> None:
        """Do nothing for `seconds`, unless the client leaves first.

        Raises:
            PeerGone: the client left. A client that only shuts down its sending side counts.
        """
        ends = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self._socket, _HUNG_UP or select.POLLIN)
        while (left := ends - time.monotonic()) > 0:
            # One day: poll's timeout is a C int of milliseconds.
            if poller.poll(min(left, 86400) * 1000):
                if _HUNG_UP or not self._peek():
                    raise PeerGone
                # A further request waits, which looks like a hang-up to poll: look again soon.
                time.sleep(min(left, 0.05))

    def drip(self, octets: bytes, *, seconds: float) -> None:
        """Send one byte at a time, evenly over `seconds`.

        Raises:
            PeerGone: the client has left.
        """
        begun = time.monotonic()
        for sent, octet in enumerate(octets, start=1):
            self.send(bytes([octet]))
            due = begun + seconds * sent / len(octets)
            self.stall(max(0.0, due - time.monotonic()))

    def reset(self) -> None:
        """Close with a TCP reset: what is not yet read at either end is lost."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def close(self) -> None:
        """Close in order: what was sent arrives, then the end of the stream."""
        self._socket.close()

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(_CHUNK)
        except OSError as error:
            raise PeerGone from error

    def _peek(self) -> bytes:
        try:
            return self._socket.recv(1, socket.MSG_PEEK)
        except OSError:
            return b""
