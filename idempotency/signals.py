"""Django signals for hosts: each is sent with `event=`, a value of the catalogue in `idempotency.telemetry`.

    @receiver(signals.key_settled)
    def note(sender, event, **kwargs): ...

They are sent in the thread in which it happened. What is told of a key is told after its commit. A receiver that fails
is logged and changes nothing.
"""

from django.dispatch import Signal

key_settled = Signal()
"""A key came to an ending: `completed`, `released` or `unknown`."""
key_met = Signal()
"""A repeat was answered from the ledger, e.g. replayed."""
person_needed = Signal()
"""A key waits for a person from now on."""
late_news = Signal()
"""Something happened outside that a settlement does not say."""
operation_moved = Signal()
"""Deferred work completed, gave up, was refused or cancelled, or waits for another run; sent before its commit."""
breaker_changed = Signal()
"""A circuit breaker moved to another state, or staff forced it."""
read_only_switched = Signal()
"""Staff switched read-only mode on or off."""
staff_acted = Signal()
"""A person did something in the console."""
