"""Arm the process at its start."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from django.apps import AppConfig
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.support.armed.plan import Plan

STATEMENT = "statement"

_plan: ContextVar[Plan | None] = ContextVar("armed_plan", default=None)


class ArmedConfig(AppConfig):
    """Stands between the runs and the product's fault points."""

    name = "tests.support.armed"

    def ready(self) -> None:
        """Let each run know its key's plan, and each fault point ask for it."""
        from idempotency import decorators, execution
        from idempotency.ledger import claim
        from idempotency.operations import registry, runner

        # None may outlive the short lease of a test.
        for name, definition in registry._definitions.items():
            registry._definitions[name] = replace(definition, own_time_limit=None)
        for door in (decorators, runner):
            door.execute = _planned(door.execute)  # type: ignore[attr-defined]
        for place in (claim, execution):
            place.reach = _asking(place.reach)  # type: ignore[attr-defined]


def _planned(execute: Callable[..., Any]) -> Callable[..., Any]:
    def planned(*, claim: Any, **rest: Any) -> Any:
        plan = Plan.of(claim.key)
        token = _plan.set(plan)
        try:
            with _each_statement(claim.phases.connection, plan):
                return execute(claim=claim, **rest)
        finally:
            _plan.reset(token)

    return planned


@contextmanager
def _each_statement(connection: BaseDatabaseWrapper, plan: Plan | None) -> Iterator[None]:
    """Reach the point "statement" before each statement of the run."""
    if plan is None or plan.point != STATEMENT:
        yield
        return

    def before(run: Callable[..., Any], *statement: Any) -> Any:
        plan.strike(STATEMENT)
        return run(*statement)

    with connection.execute_wrapper(before):
        yield


def _asking(reach: Callable[[str], None]) -> Callable[[str], None]:
    def asking(point: str) -> None:
        plan = _plan.get()
        if plan is not None:
            plan.strike(point)
        reach(point)

    return asking
