"""The kit as fixtures: `pytest_plugins = ["idempotency.testing.plugin"]` in the conftest. Needs pytest-django."""

from collections.abc import Callable

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from idempotency import testing
from idempotency.testing.database import has_the_ledger


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Let the test databases be emptied between tests."""
    with django_db_blocker.unblock():
        for connection in connections.all():
            if has_the_ledger(connection.alias):
                testing.allow_truncation(connection)


@pytest.fixture
def repeating_client() -> testing.RepeatingClient:
    """Return a client that sends what is idempotent twice, and compares."""
    return testing.RepeatingClient()


@pytest.fixture
def losing_client() -> testing.LosingClient:
    """Return a client that loses its first answer."""
    return testing.LosingClient()


@pytest.fixture
def pass_time() -> Callable[[float], None]:
    """Return what lets time pass for the ledger."""
    return testing.pass_time
