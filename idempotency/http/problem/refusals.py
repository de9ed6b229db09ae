"""Tell of the requests that were refused before a key was claimed; what follows the claim tells of itself."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from django.http import HttpRequest
from rest_framework import exceptions
from rest_framework.request import Request

from idempotency import telemetry
from idempotency.http.problem.published import catalogue
from idempotency.http.route import handlers, operation_of

_MET = frozenset(
    {
        "in-progress",
        "key-reused",
        "not-done",
        "outcome-unknown",
        "result-expired",
        "result-unavailable",
    }
)
"""The ledger's own words about a key that was there: `KeyMet` tells of them."""


def tell(*, request: Request | HttpRequest, code: str, status: int) -> None:
    """Emit `RequestRefused`, if the request was for an idempotent handler and has not come to a claim.

    Args:
        code: the problem's.
    """
    if code in _MET or hasattr(request, "claim") or not request.resolver_match:
        return
    config = _config_at(request.resolver_match.func, str(request.method))
    if config is None:
        return
    # A host's exceptions may have any code, and a label few values.
    reason = code if code in catalogue() or code in _codes_of_drf() else str(status)
    telemetry.emit(telemetry.RequestRefused(config.operation or operation_of(request), reason))


@lru_cache(maxsize=512)
def _config_at(callback: Callable[..., Any], method: str) -> Any:
    """Return what `@idempotent` was given where it counts for this method, else None."""
    for name, handler in handlers(callback):
        config = getattr(handler, "__idempotent__", None)
        if name.upper() == method and config is not None and method in config.methods:
            return config
    return None


@cache
def _codes_of_drf() -> frozenset[str]:
    kinds = (getattr(exceptions, name) for name in vars(exceptions))
    codes = (getattr(kind, "default_code", None) for kind in kinds)
    return frozenset(code.replace("_", "-") for code in codes if isinstance(code, str))
