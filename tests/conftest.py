"""Fixtures for every test: the real store, emptied; real processes, for those that want them."""

from collections.abc import Iterator
from pathlib import Path

import celery
import pytest
import redis
from django.conf import LazySettings
from django.core.management import call_command
from hypothesis import settings as hypothesis_settings

from tests.support.emptying import quickly
from tests.support.servers import servers
from tests.support.stack import Stack, database_url

pytest_plugins = ["idempotency.testing.plugin"]

# A busy machine is no counterexample: how long an example takes is never asserted.
hypothesis_settings.register_profile("patient", deadline=None)
hypothesis_settings.load_profile("patient")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: processes side by side then end together. A file's tests stay together."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    place = {item.path: number for number, item in reversed(list(enumerate(items)))}
    items.sort(key=lambda item: (item.path not in slow, place[item.path]))


@pytest.fixture(scope="session")
def redis_url() -> str:
    """Return the address of the real store."""
    from django.conf import settings

    url: str = settings.REDIS_URL
    return url


@pytest.fixture(autouse=True)
def store(redis_url: str) -> Iterator[redis.Redis]:
    """Return a client of the real store, emptied before each test.

    A store that the environment named is not emptied: it may hold somebody's data.
    """
    client = redis.Redis.from_url(redis_url)
    if servers.store is not None:
        client.flushdb()
    yield client
    client.close()


@pytest.fixture(autouse=True, scope="session")
def _emptied_quickly() -> Iterator[None]:
    if servers.postgres is None:
        # Its account may not be allowed to.
        yield
        return
    with quickly():
        yield


@pytest.fixture(autouse=True)
def _gateway_without_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the configured gateway anew for each test: its budget and its breaker's own counts are of one process.

    The breaker goes by its own counts when the store is late, as it is on a busy machine.
    """
    monkeypatch.setattr("payments.gateway.guarded._made", {})


@pytest.fixture(autouse=True)
def _same_celery() -> Iterator[None]:
    """Refuse a test that leaves an app of its own behind: those after it would ask that one for the settings."""
    yield
    assert celery.current_app.main == "project", "a test has made another app the current one"


@pytest.fixture(autouse=True)
def _fast(settings: LazySettings) -> None:
    # Each client of a test is a server that starts: it is not to read every static file then.
    settings.WHITENOISE_AUTOREFRESH = True
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def stack_database_url(transactional_db: None) -> str:
    """Return the address of the test's own database, for other processes; its rows are committed."""
    return database_url()


@pytest.fixture
def live_stack(
    stack_database_url: str, redis_url: str, tmp_path: Path, settings: LazySettings
) -> Iterator[Stack]:
    """Return a deployment with the demo accounts, nothing of which is started yet."""
    stack = new_stack(database_url=stack_database_url, redis_url=redis_url, home=tmp_path)
    make_demo(settings)
    yield stack
    stack.close()


@pytest.fixture(scope="module")
def made_stack(
    django_db_setup: None, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Return a deployment for all tests of a file, nothing of which is started yet."""
    stack = new_stack(
        database_url=database_url(), redis_url=redis_url, home=tmp_path_factory.mktemp("stack")
    )
    yield stack
    stack.close()


@pytest.fixture(scope="module")
def kept_stack(made_stack: Stack) -> Stack:
    """Return a web process and a simulator that the tests of a file share; a file may start others instead."""
    made_stack.start("simulator", "web")
    return made_stack


@pytest.fixture
def shared_stack(kept_stack: Stack, transactional_db: None, settings: LazySettings) -> Stack:
    """Return a running deployment on which nothing has happened, for tests that stop and change none of its parts."""
    if "worker" not in kept_stack.processes:
        # A worker's queue is in it.
        empty_store(kept_stack.environment["REDIS_URL"])
    kept_stack.simulate("POST", "/_sim/reset")
    make_demo(settings)
    return kept_stack


def new_stack(*, database_url: str, redis_url: str, home: Path) -> Stack:
    # Another database number than the tests' own, which is emptied at will.
    store_url = f"{redis_url.rpartition('/')[0]}/1"
    empty_store(store_url)
    broker = {"CELERY_BROKER_URL": servers.broker.url} if servers.broker else {}
    return Stack(database_url=database_url, store_url=store_url, home=home, environment=broker)


def empty_store(url: str) -> None:
    if servers.store is not None:
        with redis.Redis.from_url(url) as client:
            client.flushdb()


def make_demo(settings: LazySettings) -> None:
    settings.DEBUG = True
    call_command("payments_demo", verbosity=0)
    settings.DEBUG = False
