"""Servers for a measurement: durable, as in production, and thrown away after it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from benchmarks.rig import cpu
from project.embedded import Postgres, Store


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Yield a PostgreSQL that flushes every commit, and makes no checkpoint in the middle of a measurement."""
    with home() as place:
        server = Postgres(home=place / "postgres", durable=True)
        try:
            server.start()
            with psycopg.connect(server.url, autocommit=True) as connection:
                # A checkpoint would write whole pages into the WAL of whoever comes next.
                connection.execute("ALTER SYSTEM SET checkpoint_timeout = '1h'")
                connection.execute("ALTER SYSTEM SET max_wal_size = '32GB'")
                connection.execute("SELECT pg_reload_conf()")
            yield server
        finally:
            server.stop()
            server.remove()


@contextmanager
def store() -> Iterator[Store]:
    """Yield a Valkey that keeps everything in memory."""
    with home() as place:
        server = Store(home=place / "store", durable=False)
        try:
            server.start()
            yield server
        finally:
            server.stop()
            server.remove()


def new_database(server_url: str, name: str) -> str:
    """Make an empty database beside the named one; return its address, without TLS."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"{server_url.rpartition('/')[0]}/{name}?sslmode=disable"


def through(address: str, port: int) -> str:
    """Return the same address on another port of loopback."""
    parts = urlsplit(address)
    login = parts.netloc.rpartition("@")[0]
    return f"{parts.scheme}://{login}@127.0.0.1:{port}{parts.path}?{parts.query}"


def cpu_seconds(server: Postgres) -> float:
    """Return the CPU seconds that its processes have used; 0 where the system does not tell (other than Linux)."""
    return 0 if server.process is None else cpu.seconds_of(server.process.pid)


@contextmanager
def home() -> Iterator[Path]:
    """Yield a new folder that an unprivileged account can pass through."""
    place = Path(tempfile.mkdtemp(prefix="idempotency-ledger-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
