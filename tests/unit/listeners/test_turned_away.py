"""What was turned away is remembered for an hour, in this process."""

from idempotency import telemetry
from idempotency.telemetry.recent import SECONDS, TurnedAway


def test_refusals_are_counted_for_an_hour() -> None:
    now = [1000.0]
    seen = TurnedAway(now=lambda: now[0])
    for _ in range(3):
        seen.hear(telemetry.RequestRefused("pay", "overloaded"))
    now[0] += 90
    seen.hear(telemetry.KeyMet("pay", "reused"))
    seen.hear(telemetry.KeyMet("pay", "replay"))
    assert seen.counts() == [("pay", "overloaded", 3), ("pay", "key-reused", 1)]
    now[0] = 1000 + SECONDS
    assert seen.counts() == [("pay", "key-reused", 1)]
    now[0] += 90
    assert seen.counts() == []
