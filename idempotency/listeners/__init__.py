"""Who listens to the events here: the host's receivers, the log, the trace, the overview. Each in its own file.

Metrics listen too, from `idempotency.metrics`, where their library is installed.
"""

from idempotency.listeners import hosts, logs, traces
from idempotency.telemetry import Event, subscribe, turned_away

__all__ = ["connect"]


def connect() -> None:
    """Begin to listen; called once, when the apps are ready."""
    for listener in (hosts.tell, logs.write, traces.mark, turned_away.hear):
        subscribe(Event, listener)
