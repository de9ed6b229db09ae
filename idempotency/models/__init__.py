"""The tables. Written by `idempotency.ledger` and `idempotency.operations` only."""

from idempotency.models.event import Event
from idempotency.models.heartbeat import Heartbeat
from idempotency.models.key import Key
from idempotency.models.operation import Operation
from idempotency.models.step import Sender, Step

__all__ = ["Event", "Heartbeat", "Key", "Operation", "Sender", "Step"]
