"""The circuit breakers that the host shows here, as they stand now."""

from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from idempotency.admin import audit
from idempotency.admin.acting import REPEATED
from idempotency.admin.forms import BreakerForm
from idempotency.admin.moments import duration
from idempotency.conf import conf
from idempotency.resilience import (
    BreakerState,
    CircuitBreaker,
    Force,
    Snapshot,
    StoreUnavailable,
)


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


def breakers(request: HttpRequest) -> tuple[list[Shown], str]:
    """Return how each breaker stands, or why that cannot be said: the page is needed most when something is wrong."""
    try:
        return [shown(breaker) for breaker in known(request).values()], ""
    except ImproperlyConfigured as error:
        return [], str(error)


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


def force(request: HttpRequest, breaker: CircuitBreaker, form: BreakerForm) -> None:
    """Do what the form says, once, and tell the person what came of it."""
    actor, reason = request.user.get_username(), form.cleaned_data["reason"]
    wanted = Force(form.cleaned_data["force"])
    begun = audit.begin(
        form=form.cleaned_data["form"],
        kind="staff-breaker",
        actor=actor,
        reason=reason,
        detail={"breaker": breaker.name, "asked": wanted, "before": breaker.snapshot().state},
    )
    if not begun:
        messages.warning(request, REPEATED)
        return
    try:
        breaker.force(wanted, actor=actor, reason=reason)
    except StoreUnavailable:
        messages.error(request, "The shared store cannot be reached, so nothing was changed.")
        return
    messages.success(request, f"{breaker.name} is {shown(breaker).label}.")
