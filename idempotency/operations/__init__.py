"""Work that is done later, messages, and how an unknown outcome is looked up.

A host registers with `operation` and `resolver`, promises with `accept` and `defer`, and takes messages with `consume`
and `idempotent_task`.
"""

from idempotency.operations.deferral import accept, defer
from idempotency.operations.inbox import consume, idempotent_task
from idempotency.operations.registry import Resolver, operation, resolver

__all__ = [
    "Resolver",
    "accept",
    "consume",
    "defer",
    "idempotent_task",
    "operation",
    "resolver",
]
