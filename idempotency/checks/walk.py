"""Find the decorated handlers: walk the URL conf down to the methods of each view."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.views import APIView

_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


@dataclass(frozen=True, slots=True)
class Decorated:
    """One decorated handler on one route.

    `methods` are those by which the route reaches the handler, upper case; `view` is None where the
    handler was given to the URL conf as it is.
    """

    route: str
    name: str | None
    callback: Callable[..., Any]
    view: type[APIView] | None
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
    view = getattr(callback, "cls", None)
    if view is None:
        if hasattr(callback, "__idempotent__"):
            yield Decorated(route, pattern.name, callback, None, callback, ())
        return
    found: dict[Callable[..., Any], list[str]] = {}
    for method, handler in _handlers(callback, view):
        if hasattr(handler, "__idempotent__"):
            found.setdefault(handler, []).append(method.upper())
    for handler, methods in found.items():
        yield Decorated(route, pattern.name, callback, view, handler, tuple(methods))


def _handlers(callback: Any, view: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    actions = getattr(callback, "actions", None)
    for method, name in (actions or {method: method for method in _METHODS}).items():
        handler = getattr(view, name, None)
        if handler is None:
            continue
        if view.__name__ != handler.__qualname__.partition(".")[0] and inspect.isfunction(handler):
            # `@api_view` hides the function in the closure of the method it makes.
            handler = inspect.getclosurevars(handler).nonlocals.get("func", handler)
        yield method, handler
