"""Writes on the current trace span how a key was answered, and each attempt of a call that did not succeed."""

from idempotency import telemetry, tracing
from idempotency.telemetry import Event


def mark(event: Event) -> None:
    """Set the event's attributes on the span under way, if it has any."""
    match event:
        case telemetry.KeyMet(operation=name, answer=answer):
            tracing.mark(operation=name, outcome=answer)
        case telemetry.RunEnded(operation=name, ending=ending):
            tracing.mark(operation=name, outcome=ending)
        case telemetry.KeySettled(operation=name, state=state, by=by, key_hash=key_hash):
            tracing.mark(operation=name, state=state, by=by, key_hash=key_hash)
        case telemetry.AttemptEnded(outcome="success"):
            return
        case telemetry.AttemptEnded(number=number):
            tracing.note("attempt", **event.labels(), number=number)
        case telemetry.CallRefused():
            tracing.note("refused", **event.labels())
