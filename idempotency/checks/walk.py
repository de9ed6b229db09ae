"""Find the decorated handlers, and those that are not: walk the URL conf down to the methods of each view."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver
from django.views import View
from rest_framework.views import APIView

from idempotency.decorated import config_of
from idempotency.http.route import handlers, view_of


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

    @property
    def place(self) -> str:
        """Return the handler's full name, and that of the view which has it of another class."""
        if self.view is None or self.view.__name__ == self.handler.__qualname__.partition(".")[0]:
            return self.label
        return f"{self.label} of {self.view.__module__}.{self.view.__qualname__}"


def decorated_handlers() -> Iterator[Decorated]:
    """Yield every decorated handler that a route leads to."""
    if getattr(settings, "ROOT_URLCONF", None):
        for route, pattern in _patterns(get_resolver(), ""):
            yield from _decorated(route, pattern)


def whole_views() -> Iterator[type[APIView]]:
    """Yield every DRF view that a route leads to and that is decorated at its `dispatch`."""
    if getattr(settings, "ROOT_URLCONF", None):
        for _, pattern in _patterns(get_resolver(), ""):
            view = view_of(pattern.callback)
            if view is not None and issubclass(view, APIView) and config_of(view.dispatch):
                yield view


@dataclass(frozen=True, slots=True, order=True)
class Bare:
    """An unsafe way to reach a DRF view on which no key counts."""

    route: str
    method: str
    label: str


def bare_handlers() -> Iterator[Bare]:
    """Yield each unsafe method of each routed DRF view whose handler is not decorated for it.

    Of a route that is there twice only the first is reached, so a host can stand before another's views.
    """
    reached: set[str] = set()
    for route, pattern in _patterns(get_resolver(), ""):
        if route not in reached:
            reached.add(route)
            yield from _bare(route, pattern)


def _bare(route: str, pattern: URLPattern) -> Iterator[Bare]:
    view = view_of(pattern.callback)
    if view is None or not issubclass(view, APIView) or view.__module__ == _OWN_VIEWS:
        return
    for method, handler in handlers(pattern.callback):
        config = config_of(handler)
        counts = config is not None and method.upper() in config.methods
        if method in _UNSAFE and not counts:
            label = f"{handler.__module__}.{handler.__qualname__}"
            yield Bare(route, method.upper(), label)


_OWN_VIEWS = "idempotency.views"
"""To cancel twice is a success: the monitor needs no keys."""
_UNSAFE = frozenset({"post", "put", "patch", "delete"})


def _patterns(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern, route)
        else:
            yield route, pattern


def _decorated(route: str, pattern: URLPattern) -> Iterator[Decorated]:
    callback = pattern.callback
    view = view_of(callback)
    found: dict[Callable[..., Any], list[str]] = {}
    for method, handler in handlers(callback):
        if hasattr(handler, "__idempotent__"):
            found.setdefault(handler, []).append(method.upper())
    for handler, methods in found.items():
        yield Decorated(route, pattern.name, callback, view, handler, tuple(methods))
