"""Hands events on to the host, as Django signals."""

from collections.abc import Mapping

from django.dispatch import Signal

from idempotency import signals, telemetry

SIGNALS: Mapping[type[telemetry.Event], Signal] = {
    telemetry.KeySettled: signals.key_settled,
    telemetry.KeyMet: signals.key_met,
    telemetry.PersonNeeded: signals.person_needed,
    telemetry.LateNews: signals.late_news,
    telemetry.OperationMoved: signals.operation_moved,
    telemetry.BreakerChanged: signals.breaker_changed,
    telemetry.ReadOnlySwitched: signals.read_only_switched,
    telemetry.StaffActed: signals.staff_acted,
}


def tell(event: telemetry.Event) -> None:
    """Send the event's signal, if it has one; Django logs a receiver that fails."""
    signal = SIGNALS.get(type(event))
    if signal is not None:
        signal.send_robust(sender=type(event), event=event)
