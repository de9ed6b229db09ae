"""The circuit breakers that the host shows here, as they stand now."""

from dataclasses import dataclass

from django.http import HttpRequest

from idempotency.admin.moments import duration
from idempotency.conf import conf
from idempotency.resilience import BreakerState, CircuitBreaker, Snapshot


@dataclass(frozen=True, slots=True)
class Shown:
    """One breaker, in words."""

    name: str
    label: str
    tone: str
    detail: str


_WORDS = {
    BreakerState.CLOSED: ("closed: calls go through", "good"),
    BreakerState.OPEN: ("open: calls are refused", "bad"),
    BreakerState.HALF_OPEN: ("half open: a few calls try it", "warn"),
    BreakerState.FORCED_OPEN: ("held open: calls are refused", "bad"),
    BreakerState.FORCED_CLOSED: ("held closed: calls go through", "warn"),
}


def known(request: HttpRequest) -> dict[str, CircuitBreaker]:
    """Return the host's breakers by name."""
    hook = conf.ADMIN_BREAKERS
    return {breaker.name: breaker for breaker in hook(request)} if hook is not None else {}


def breakers(request: HttpRequest) -> list[Shown]:
    """Return how each breaker stands."""
    return [shown(breaker) for breaker in known(request).values()]


def shown(breaker: CircuitBreaker) -> Shown:
    """Return how one breaker stands."""
    seen = breaker.snapshot()
    label, tone = _WORDS[seen.state]
    return Shown(breaker.name, label, tone, _detail(seen))


def _detail(seen: Snapshot) -> str:
    said = []
    if seen.actor:
        said.append(f"by {seen.actor}: {seen.reason}")
    elif seen.state is BreakerState.CLOSED:
        said.append(f"{seen.failures} of {seen.calls} recent calls failed")
    if seen.open_for:
        said.append(f"tries again in {duration(seen.open_for)}")
    if not seen.shared:
        said.append("this process's own view")
    return "; ".join(said)
