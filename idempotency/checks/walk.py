"""Find the decorated handlers: walk the URL conf down to the methods of each view."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver
from django.views import View

from idempotency.decorated import handlers, view_of


@dataclass(frozen=True, slots=True)
class Decorated:
    """One decorated handler on one route.

    `methods` are those by which the route reaches the handler, upper case; `view` is None where the
    handler was given to the URL conf as it is.
    """

    route: str
    name: str | None
    callback: Callable[..., Any]
    view: type[View] | None
    handler: Callable[..., Any]
    methods: tuple[str, ...]

    @property
    def config(self) -> Any:
        """Return what `@idempotent` was given."""
        return self.handler.__idempotent__  # type: ignore[attr-defined]

    @property
    def label(self) -> str:
        """Return the handler's full name."""
        return f"{self.handler.__module__}.{self.handler.__qualname__}"


def decorated_handlers() -> Iterator[Decorated]:
    """Yield every decorated handler that a route leads to."""
    if getattr(settings, "ROOT_URLCONF", None):
        yield from _below(get_resolver(), "")


def _below(resolver: URLResolver, prefix: str) -> Iterator[Decorated]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _below(pattern, route)
        else:
            yield from _of(pattern, route)


def _of(pattern: URLPattern, route: str) -> Iterator[Decorated]:
    callback = pattern.callback
    view = view_of(callback)
    found: dict[Callable[..., Any], list[str]] = {}
    for method, handler in handlers(callback):
        if hasattr(handler, "__idempotent__"):
            found.setdefault(handler, []).append(method.upper())
    for handler, methods in found.items():
        yield Decorated(route, pattern.name, callback, view, handler, tuple(methods))
