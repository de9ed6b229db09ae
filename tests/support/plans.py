"""What the database does for a statement: its plan, with how many rows it really read."""

import re
from collections.abc import Callable
from typing import Any

from django.db import connection, transaction


def plans_of(run: Callable[[], object]) -> list[str]:
    """Return the plan of each statement that a function runs, with what it really did; nothing of it is kept."""
    plans: list[str] = []

    def explain(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        execute(f"EXPLAIN (ANALYZE) {sql}", parameters, many, context)
        plans.append("\n".join(row[0] for row in context["cursor"].fetchall()))

    with transaction.atomic():
        with connection.execute_wrapper(explain):
            run()
        transaction.set_rollback(True)
    return plans


def most_passed_over(plan: str) -> int:
    """Return how many rows were read for nothing at the place of a plan where these were most."""
    return max(map(int, re.findall(r"Rows Removed by [ \w]+: (\d+)", plan)), default=0)
