"""What the API does when it cannot do everything: leave out what it can do without, refuse writes, turn work away.

The ladder (R29, R30): live → stale → default → skipped for the sources of a summary; read-only mode; admission. A
charge is on no ladder: it is made, or honestly refused.
"""

from functools import cache

from django.conf import settings
from django.http import HttpRequest

from idempotency.resilience import (
    Admission,
    CircuitBreaker,
    Degradable,
    ReadOnlySwitch,
    Rung,
    SharedStore,
    degrade,
)
from payments import dependencies
from payments.conf import conf
from payments.gateway.guarded import configured as configured_gateway

__all__ = ["Rung", "breakers", "charging", "extras", "read_only", "switches"]


def extras() -> Degradable:
    """Ask the sources that a summary is nicer with, in parallel; never fails, and takes 150 ms at most."""
    sources = dependencies.configured()
    return degrade(sources.rates(), sources.offers())


@cache
def read_only() -> ReadOnlySwitch:
    """Return the switch by which staff stop all writes of the API, in all processes."""
    url = getattr(settings, "REDIS_URL", "")
    return ReadOnlySwitch(name="payments", store=SharedStore.connect(url) if url else None)


def charging() -> Admission:
    """Return the door of new payments.

    More of them than calls at the gateway would claim their keys only to be refused by its bulkhead.
    """
    return _charging(conf.GATEWAY_BULKHEAD)


@cache
def _charging(in_flight: int) -> Admission:
    return Admission(name="payments.create", in_flight=in_flight)


def switches(request: HttpRequest) -> list[ReadOnlySwitch]:
    """Return every switch of this deployment, for the console and the metrics."""
    return [read_only()]


def breakers(request: HttpRequest) -> list[CircuitBreaker]:
    """Return every breaker of this deployment, for the console and the metrics."""
    through, sources = configured_gateway(), dependencies.configured()
    guards = [through.sends, through.reads, *sources.guards.values()]
    return [guard.terms.breaker for guard in guards if guard.terms.breaker is not None]
