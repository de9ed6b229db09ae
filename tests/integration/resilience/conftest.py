"""Real shared stores of both kinds, that a test may stop, hang and empty."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from idempotency.resilience import SharedStore
from project.embedded.store import Store


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    server = Store(home=tmp_path_factory.mktemp("valkey"), durable=False, kind="valkey")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def real_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    server = Store(home=tmp_path_factory.mktemp("redis"), durable=False, kind="redis")
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["valkey", "real_redis"])
def store_server(request: pytest.FixtureRequest) -> Store:
    """Return a running server of our own: Valkey, then Redis."""
    server: Store = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def shared(store_server: Store) -> SharedStore:
    """Return the store as a process sees it."""
    return SharedStore.connect(store_server.url, timeout=2.0)


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Store]:
    """Return a server that this test may stop and start."""
    server = Store(home=tmp_path / "store", durable=False, kind="valkey")
    server.start()
    yield server
    server.stop()
