"""The embedded servers, in folders of their own."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from project.embedded import Postgres, ServerFailed, Store, places
from project.embedded.store import Kind

ROOT = os.geteuid() == 0


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Postgres]:
    server = Postgres(home=tmp_path / "postgres", durable=False)
    yield server
    server.stop()
    server.remove()


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute(statement).fetchone()
        return row[0] if row else None


def test_postgres_keeps_its_data_and_its_port_over_a_restart(postgres: Postgres) -> None:
    url = postgres.start()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    postgres.stop()
    assert postgres.start() == url
    assert ask(url, "SELECT number FROM kept") == 7


def test_postgres_starts_after_a_crash(postgres: Postgres) -> None:
    url = postgres.start()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    postgres.kill()
    assert postgres.start() == url
    assert ask(url, "SELECT number FROM kept") == 7


def test_postgres_listens_on_loopback_behind_a_password(postgres: Postgres) -> None:
    url = postgres.start()
    assert ask(url, "SHOW listen_addresses") == "127.0.0.1"
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url.replace(postgres.password, "guessed"))
    assert stat.S_IMODE((postgres.home / "password").stat().st_mode) == 0o600


def test_durable_postgres_does_not_lose_what_it_acknowledged(tmp_path: Path) -> None:
    server = Postgres(home=tmp_path / "postgres")
    try:
        url = server.start()
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert ask(url, f"SHOW {setting}") == "on"
    finally:
        server.stop()
        server.remove()


@pytest.mark.skipif(not ROOT, reason="only root has to change its account")
def test_root_runs_postgres_as_nobody_and_leaves_every_mode_as_it_was(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = {path: path.stat().st_mode for path in [closed, *closed.parents]}
    server = Postgres(home=closed / "postgres", durable=False)
    try:
        server.start()
        assert server.process is not None
        assert Path(f"/proc/{server.process.pid}").stat().st_uid != 0
        assert {path: path.stat().st_mode for path in before} == before
        assert not server.place.is_relative_to(closed)
        again = Postgres(home=closed / "postgres", durable=False)
        assert again.place == server.place
    finally:
        server.stop()
        server.remove()
    assert not server.place.exists()


@pytest.mark.skipif(not ROOT, reason="only root has to change its account")
def test_place_in_a_public_folder_that_others_can_change_is_refused(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    foreign.chmod(0o777)
    (closed / "DATA_IS_IN").write_text(f"{foreign}\n")
    with pytest.raises(ServerFailed, match="of this account alone"):
        Postgres(home=closed)


def test_lock_of_a_dead_server_is_forgotten(tmp_path: Path) -> None:
    lock = tmp_path / "postmaster.pid"
    lock.write_text(f"{os.getpid()}\n")
    places.forget_dead_postmaster(tmp_path)
    assert not lock.exists()


def test_lock_of_a_living_server_is_respected(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.start()
    monkeypatch.setattr(places, "ORPHAN_SECONDS", 0.1)
    with pytest.raises(ServerFailed, match="still runs"):
        Postgres(home=postgres.home, durable=False).start()


def test_first_start_that_was_cut_short_is_begun_anew(postgres: Postgres) -> None:
    draft = postgres.data.with_name("pgdata.new")
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    assert ask(postgres.start(), "SELECT 1") == 1


@pytest.mark.parametrize("kind", ["valkey", "redis"])
def test_store_wants_its_password_and_never_evicts(kind: Kind, tmp_path: Path) -> None:
    server = Store(home=tmp_path / kind, kind=kind, durable=False)
    url = server.start()
    try:
        with redis.Redis.from_url(url) as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert client.config_get("bind") == {"bind": "127.0.0.1"}
        with (
            redis.Redis(port=server.port) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
    finally:
        server.stop()


def test_durable_store_keeps_its_data_over_a_restart(tmp_path: Path) -> None:
    server = Store(home=tmp_path / "valkey with a space")
    url = server.start()
    try:
        with redis.Redis.from_url(url) as client:
            client.set("kept", "7")
        server.stop()
        assert server.start() == url
        with redis.Redis.from_url(url) as client:
            assert client.get("kept") == b"7"
    finally:
        server.stop()


def test_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    first = Store(home=tmp_path / "one", durable=False)
    first.start()
    try:
        second = Store(home=tmp_path / "two", port=first.port, durable=False)
        with pytest.raises(ServerFailed, match="valkey did not start"):
            second.start()
        shutil.rmtree(second.home)
    finally:
        first.stop()


def test_postgres_that_does_not_stop_in_time_leaves_no_backend_behind(postgres: Postgres) -> None:
    url = postgres.start()
    assert postgres.process is not None
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE much AS SELECT generate_series(1, 100000)")
    server = psutil.Process(postgres.process.pid)
    backends = server.children(recursive=True)
    assert backends
    postgres.stop(grace=0)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    _, alive = psutil.wait_procs(backends, timeout=2)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert ask(postgres.start(), "SELECT count(*) FROM much") == 100000
