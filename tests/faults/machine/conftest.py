"""A deployment to break, the database's witness, and a report at the end of the session."""

import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from tests.faults.machine.deployment import HEALS_WITHIN, Deployment
from tests.faults.machine.witness import witness
from tests.support.stack import Stack

_said: list[str] = []


@pytest.fixture
def seed() -> int:
    """Return MACHINE_SEED, or one of its own for each session: every failure names it."""
    return int(os.environ.get("MACHINE_SEED") or int.from_bytes(os.urandom(3), "big"))


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


def healing(times: dict[str, float]) -> str:
    """Say how long it took from a strike to its settlement."""
    if not times:
        return "nothing was struck"
    worst = max(times, key=lambda name: times[name])
    return (
        f"{len(times)} struck keys settled, median {statistics.median(times.values()):.1f} s, "
        f"worst {times[worst]:.1f} s (promised {HEALS_WITHIN:g} s) in cell {worst}"
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _said:
        terminalreporter.section("fault machine")
        for line in _said:
            terminalreporter.write_line(line)
