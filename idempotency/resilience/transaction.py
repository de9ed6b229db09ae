"""Units of work that are run again as a whole when somebody else was faster."""

from collections.abc import Callable
from typing import TypeVar

from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import OptimisticConflict
from idempotency.resilience.deadline import current_deadline
from idempotency.resilience.retry import RetryPolicy
from idempotency.resilience.signs import chain, sqlstate

T = TypeVar("T")

RERUN = frozenset({"40001", "40P01"})
"""serialization_failure and deadlock_detected: PostgreSQL rolled the whole transaction back."""

_OUTAGES = frozenset({"25006", "25P03", "25P04"})
"""The server takes no writes; it ended a transaction that was idle, or open, for too long.

psycopg calls these internal errors, and not operational ones.
"""

_DEFAULT_POLICY = RetryPolicy(attempts=5, base=0.02, cap=0.5)


def retry_transaction(
    unit_of_work: Callable[[], T],
    *,
    policy: RetryPolicy = _DEFAULT_POLICY,
    clock: Clock = SYSTEM,
) -> T:
    """Run the unit of work, again from its beginning after a conflict, and return its result.

    The unit opens its own transaction, re-reads what it decides on, and calls nothing outside: a
    statement alone is never repeated. Of the policy, the attempts and pauses count. The last
    conflict is raised when attempts or the ambient deadline run out.

    Raises:
        Exception: whatever else the unit raises, at once.
    """
    for retries in range(policy.attempts - 1):
        try:
            return unit_of_work()
        except Exception as error:
            deadline = current_deadline()
            pause = policy.pause(retries, clock=clock)
            no_time = deadline is not None and pause >= deadline.left() - policy.reserve
            if no_time or not is_conflict(error):
                raise
        clock.wait(None, pause)
    return unit_of_work()


def is_conflict(error: BaseException) -> bool:
    """Return whether the whole unit of work was undone by a conflict and may be run again."""
    return sqlstate(error) in RERUN or any(isinstance(e, OptimisticConflict) for e in chain(error))


def is_outage(error: BaseException) -> bool:
    """Return whether the server undid the transaction for a reason of its own, whatever was asked of it."""
    return sqlstate(error) in _OUTAGES
