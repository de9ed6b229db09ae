"""PgBouncer in transaction mode before the suite's PostgreSQL."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from project.embedded.server import HOST, free_port

START_SECONDS = 90.0
CONNECTIONS = 3


def installed() -> bool:
    """Return whether there is one to start."""
    return _program() is not None


class PgBouncer:
    """Started on entry; gives the settings of a database that is reached through it."""

    def __init__(self, *, home: Path, database: dict[str, Any]) -> None:
        self._home = home / "pgbouncer"
        self._database = database
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> dict[str, Any]:
        self._write()
        self._launch()
        # What Django's documentation asks for behind a pooler of transactions.
        return {**self._database, "PORT": self._port, "DISABLE_SERVER_SIDE_CURSORS": True}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)

    def kill(self) -> None:
        """End it at once, as a crash does, and start it again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)
        self._launch()

    def _launch(self) -> None:
        self._process = subprocess.Popen(
            [_program() or "pgbouncer", str(self._home / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **_account(),
        )
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self._port), 1):
                break
            assert time.monotonic() < end, (self._home / "log").read_text()
            time.sleep(0.05)

    def _write(self) -> None:
        at = self._database
        self._home.mkdir()
        (self._home / "users").write_text(f'"{at["USER"]}" "{at["PASSWORD"]}"\n')
        (self._home / "pgbouncer.ini").write_text(
            f"""
[databases]
{at["NAME"]} = host={at["HOST"]} port={at["PORT"]}
[pgbouncer]
listen_addr = {HOST}
listen_port = {self._port}
unix_socket_dir =
auth_type = plain
auth_file = {self._home}/users
logfile = {self._home}/log
pool_mode = transaction
default_pool_size = {CONNECTIONS}
"""
        )
        if os.geteuid() == 0:
            self._hand_over()

    def _hand_over(self) -> None:
        # It refuses to run as root, and must reach its files from an account that is not.
        nobody = pwd.getpwnam("nobody")
        for path in (self._home, *self._home.iterdir()):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        for parent in self._home.parents:
            if parent == Path(tempfile.gettempdir()):
                break
            parent.chmod(parent.stat().st_mode | 0o111)


def _program() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def _account() -> dict[str, Any]:
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
