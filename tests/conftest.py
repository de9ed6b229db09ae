"""Fixtures for every test: the real store, emptied, and its address."""

from collections.abc import Iterator

import pytest
import redis
from django.conf import LazySettings

from tests.support.servers import servers


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


@pytest.fixture(autouse=True)
def _fast_passwords(settings: LazySettings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
