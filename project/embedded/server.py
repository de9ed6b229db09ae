"""What every embedded server has in common: a home, a port, a process, a log."""

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from project import lifeline

HOST = "127.0.0.1"
START_SECONDS = 30.0
POLL_SECONDS = 0.03
PORT_TRIES = 3


class ServerFailed(Exception):
    """A server did not start; the message says which, and shows the end of its log."""


class Server:
    """One server process on loopback. Subclasses say how it is called and when it is ready.

    `home` holds its files and outlives it; `port` 0 takes a free one at the first start and keeps
    it over restarts.
    """

    name = "server"
    # How it is asked to stop, without waiting for clients.
    stop_signal = signal.SIGTERM

    def __init__(self, *, home: Path, port: int = 0, durable: bool = True) -> None:
        self.home = home
        self.port = port
        self.durable = durable
        self.process: subprocess.Popen[bytes] | None = None
        self._chosen = port != 0

    @property
    def url(self) -> str:
        """Return the address to connect to, password included."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        """Return the file that the server writes to."""
        return self.home / f"{self.name}.log"

    @property
    def password(self) -> str:
        """Return the random password, made at the first use and kept beside the files."""
        path = self.home / "password"
        if not path.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(24))
        return path.read_text()

    @property
    def running(self) -> bool:
        """Return whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> str:
        """Start, wait until it answers, return the address. Raises: ServerFailed."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.prepare()
        for attempt in range(1, PORT_TRIES + 1):
            if not self._chosen:
                self.port = free_port()
            try:
                self._launch()
            except ServerFailed:
                # Somebody may have taken the free port in between.
                if self._chosen or attempt == PORT_TRIES or not port_taken(self.port):
                    raise
            else:
                break
        self._chosen = True
        self.settle()
        return self.url

    def stop(self, *, grace: float = 8.0) -> None:
        """Stop in order; by force after `grace` seconds."""
        if self.process is None:
            return
        if self.running:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.insist()
        self.process = None

    def insist(self) -> None:
        """End a server that did not stop in time."""
        self.kill()

    def kill(self) -> None:
        """End the process by force, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def remove(self) -> None:
        """Remove all its files, data included."""
        shutil.rmtree(self.home, ignore_errors=True)

    def prepare(self) -> None:
        """Make ready what the server needs on disk."""

    def settle(self) -> None:
        """Do what needs the running server, once it answers."""

    def program(self) -> Sequence[str]:
        """Return the command line."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Return whether the server answers."""
        raise NotImplementedError

    def spawn(self, output: int) -> subprocess.Popen[bytes]:
        """Start the process, writing to the given file."""
        return subprocess.Popen(
            lifeline.command(self.program(), death=self.stop_signal),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )

    def _launch(self) -> None:
        with self.log.open("ab") as output:
            begun = output.tell()
            self.process = self.spawn(output.fileno())
        end = time.monotonic() + START_SECONDS
        while not self.ready():
            if not self.running or time.monotonic() > end:
                self.kill()
                said = self.log.read_bytes()[begun:].decode(errors="replace").strip()
                raise ServerFailed(f"{self.name} did not start: {said[-1500:] or 'no word'}")
            time.sleep(POLL_SECONDS)


def free_port() -> int:
    """Return a TCP port of loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        number: int = probe.getsockname()[1]
        return number


def port_taken(number: int) -> bool:
    """Return whether somebody listens on this port of loopback."""
    with socket.socket() as probe:
        # As servers do: an ended connection still in TIME_WAIT does not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, number))
        except OSError:
            return True
        return False


def package(name: str) -> Path | None:
    """Return the folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
