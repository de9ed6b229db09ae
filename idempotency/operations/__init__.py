"""Work that is done later, messages, and how an unknown outcome is looked up.

A host registers with `operation` and `resolver`, promises with `accept` and `defer`, and takes messages with `consume`
and `idempotent_task`. What it hears of a key's outside effect by other ways it tells by `heard_of` and `late_news`.
A person begins work again with `retry`, ends it with `cancel`, and has a message taken in again with `run_again`, by
its source's `message_handler`. The silence of a periodic task is noticed by
`recurring`.
"""

from idempotency.operations.byhand import NotNow, cancel, retry
from idempotency.operations.deferral import accept, defer
from idempotency.operations.heartbeat import Recurring, recurring
from idempotency.operations.inbox import consume, idempotent_task
from idempotency.operations.news import heard_of, late_news
from idempotency.operations.registry import Resolver, operation, resolver
from idempotency.operations.rerun import can_run, message_handler, run_again

__all__ = [
    "NotNow",
    "Recurring",
    "Resolver",
    "accept",
    "can_run",
    "cancel",
    "consume",
    "defer",
    "heard_of",
    "idempotent_task",
    "late_news",
    "message_handler",
    "operation",
    "recurring",
    "resolver",
    "retry",
    "run_again",
]
