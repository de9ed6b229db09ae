"""A deployment to break, the database's witness, and a report at the end of the session."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from tests.faults.machine.deployment import Deployment
from tests.faults.machine.witness import witness
from tests.support.stack import Stack

_said: list[str] = []


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return MACHINE_SEED, which every failure names.

    Without one, `make chaos` draws another each time, and the suite always takes the same.
    """
    long = request.node.get_closest_marker("chaos") is not None
    drawn = int.from_bytes(os.urandom(3), "big") if long else 1
    return int(os.environ.get("MACHINE_SEED", drawn))


@pytest.fixture
def deploy(live_stack: Stack, settings: LazySettings) -> Iterator[Callable[..., Deployment]]:
    """Return what makes the deployment, watched by the database."""

    def make(**options: Any) -> Deployment:
        return Deployment(live_stack, settings, **options)

    with witness():
        yield make


@pytest.fixture
def report() -> Callable[[str], None]:
    """Return what adds a line to the session's report."""
    return _said.append


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _said:
        terminalreporter.section("fault machine")
        for line in _said:
            terminalreporter.write_line(line)
