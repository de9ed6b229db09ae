"""Start real servers before Django reads its settings: a pytest plugin, named in pyproject.toml.

DATABASE_URL and REDIS_URL replace the embedded servers; TEST_STORE=redis runs the suite on Redis
instead of Valkey, TEST_POSTGRES on the PostgreSQL whose programs are in that folder, TEST_BROKER=rabbitmq the processes
of its deployments on an installed RabbitMQ. The servers end with this process, however it ends.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from project.embedded import Postgres, ServerFailed, Store
from tests.support.rabbitmq import RabbitMQ

PREFIX = "idempotency-ledger-tests-"
_STARTED = "TEST_SERVERS_STARTED"
"""Names the variables that this plugin has set, for the processes that inherit them."""


class Servers:
    """The servers of this session; one is None where the environment named another."""

    def __init__(self) -> None:
        self.postgres: Postgres | None = None
        self.store: Store | None = None
        self.broker: RabbitMQ | None = None
        self._cleanup = contextlib.ExitStack()

    def start(self) -> None:
        """Start what the environment does not name, and name it there."""
        if os.environ.get("PYTEST_XDIST_WORKER"):
            # What the environment names is its parent's: each of the processes side by side has servers of its own.
            for name in filter(None, os.environ.get(_STARTED, "").split(",")):
                del os.environ[name]
        home = self._cleanup.enter_context(_home())
        if not os.environ.get("DATABASE_URL"):
            binaries = os.environ.get("TEST_POSTGRES")
            self.postgres = Postgres(
                home=home / "postgres",
                durable=False,
                binaries=Path(binaries) if binaries else None,
            )
            self._cleanup.callback(self.postgres.remove)
            self._name("DATABASE_URL", self.postgres.start())
            self._cleanup.callback(self.postgres.stop)
        if not os.environ.get("REDIS_URL"):
            kind = os.environ.get("TEST_STORE", "valkey")
            if kind not in {"valkey", "redis"}:
                raise pytest.UsageError(f"TEST_STORE={kind!r} is not valkey or redis")
            self.store = Store(
                home=home / "store", durable=False, kind="redis" if kind == "redis" else "valkey"
            )
            self._name("REDIS_URL", self.store.start())
            self._cleanup.callback(self.store.stop)
        if broker := os.environ.get("TEST_BROKER"):
            if broker != "rabbitmq" or not RabbitMQ.installed():
                raise pytest.UsageError(f"TEST_BROKER={broker!r} is not rabbitmq, or not installed")
            self.broker = RabbitMQ(home=home / "broker")
            self.broker.start()
            self._cleanup.callback(self.broker.stop)

    def _name(self, variable: str, address: str) -> None:
        os.environ[variable] = address
        started = os.environ.get(_STARTED, "")
        os.environ[_STARTED] = f"{started},{variable}"

    def stop(self) -> None:
        """Stop them and remove their files."""
        self._cleanup.close()


servers = Servers()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Run before pytest-django's hook of this name, which reads the settings."""
    options = early_config.known_args_namespace
    os.environ.setdefault("DEBUG", "1")
    if not (options.help or options.version):
        try:
            servers.start()
        except ServerFailed as error:
            servers.stop()
            raise pytest.UsageError(str(error)) from error
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stop the servers when all else has ended."""
    servers.stop()


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    """Make a folder for this session; remove those of sessions that were killed."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), (old / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(old)
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    # PostgreSQL may run as another account, which must be able to pass through.
    home.chmod(0o755)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield home
        _remove(home)


def _remove(home: Path) -> None:
    pointer = home / "postgres" / "DATA_IS_IN"
    if pointer.exists():
        shutil.rmtree(pointer.read_text().strip(), ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
