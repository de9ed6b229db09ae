"""Calling something that can fail, and being called by too many. Usable in any Python program.

Start with `Guard`. Nothing here imports Django, a driver or a client: `http_client` and
`SharedStore.connect` import theirs when they are used.
"""

from typing import TYPE_CHECKING, Any

from idempotency.resilience.admission import Admission
from idempotency.resilience.attempt import Attempt, current_attempt, journalled
from idempotency.resilience.breaker import CircuitBreaker
from idempotency.resilience.breakerstate import BreakerSettings, BreakerState, Force, Snapshot
from idempotency.resilience.bulkhead import Bulkhead
from idempotency.resilience.deadline import Deadline, current_deadline, deadline_scope
from idempotency.resilience.degradation import (
    SOURCE_POLICY,
    Degradable,
    LastGood,
    Part,
    Rung,
    Source,
    degrade,
)
from idempotency.resilience.guard import Guard
from idempotency.resilience.readonly import ReadOnlySwitch
from idempotency.resilience.registry import register_error
from idempotency.resilience.retry import RetryBudget, RetryPolicy, jittered
from idempotency.resilience.signs import sqlstate
from idempotency.resilience.store import SharedStore, StoreUnavailable
from idempotency.resilience.table import Evidence, Vote
from idempotency.resilience.transaction import is_conflict, is_outage, retry_transaction

if TYPE_CHECKING:
    from idempotency.resilience.transport import http_client

__all__ = [
    "SOURCE_POLICY",
    "Admission",
    "Attempt",
    "BreakerSettings",
    "BreakerState",
    "Bulkhead",
    "CircuitBreaker",
    "Deadline",
    "Degradable",
    "Evidence",
    "Force",
    "Guard",
    "LastGood",
    "Part",
    "ReadOnlySwitch",
    "RetryBudget",
    "RetryPolicy",
    "Rung",
    "SharedStore",
    "Snapshot",
    "Source",
    "StoreUnavailable",
    "Vote",
    "current_attempt",
    "current_deadline",
    "deadline_scope",
    "degrade",
    "http_client",
    "is_conflict",
    "is_outage",
    "jittered",
    "journalled",
    "register_error",
    "retry_transaction",
    "sqlstate",
]


def __getattr__(name: str) -> Any:
    # The client needs httpx2, which the rest of this room does not.
    if name == "http_client":
        from idempotency.resilience.transport import http_client

        return http_client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
