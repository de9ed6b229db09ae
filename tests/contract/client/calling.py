"""One of the clients, called alike, and what its server says."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from idempotency.client import (
    Answer,
    MemoryIntents,
)
from idempotency.resilience import RetryPolicy
from tests.support.faketime import FakeTime
from tests.support.faultserver import FaultServer
from tests.support.scripted import Line, problem

ORDER = {"order_id": "881", "amount": 5}
POLICY = RetryPolicy(
    attempts=4, base=0.2, cap=5.0, attempt_timeout=5.0, series=60.0, reserve=0.0
)  # fmt: skip

IN_PROGRESS = problem(409, "in-progress", after=2, retryable=True, operation_ref="ref-1")
UNKNOWN_FIRST = problem(504, "outcome-unknown", after=5, retryable=True, operation_ref="ref-1")
UNKNOWN = problem(409, "outcome-unknown", after=5, retryable=True, operation_ref="ref-1")
BUSY = problem(503, "overloaded", after=3, retryable=True)
DONE: Line = (201, {"id": "p1"})


@dataclass
class Caller:
    """One of the clients, called alike."""

    client: Any
    time: FakeTime
    run: Callable[[Any], Any]
    store: MemoryIntents
    again: Callable[[], "Caller"]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            return self.run(made) if inspect.isawaitable(made) else made

        return call


Make = Callable[[FaultServer], Caller]


def pay(caller: Caller, **more: Any) -> Answer:
    answer: Answer = caller.post("/api/payments/", json=ORDER, intent="charge 881", **more)
    return answer
