"""Where a request was sent: its route, the arguments in its path, and the handler behind it."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.http import HttpRequest
from django.views import View
from rest_framework.request import Request


def operation_of(request: HttpRequest | Request) -> str:
    """Return the name of an operation that was not given one: the method and the route's name."""
    match = request.resolver_match
    name = (match.view_name or match.route) if match else request.path
    return f"{request.method} {name}"[:100]


def route_of(request: HttpRequest | Request) -> str:
    """Return the pattern of the route, which stands for every path that it matches."""
    return request.resolver_match.route if request.resolver_match else request.path


def arguments_of(request: HttpRequest | Request) -> Mapping[str, object]:
    """Return the concrete arguments in the path, positional ones under their number."""
    if isinstance(request, Request):
        args, kwargs = request.parser_context["args"], request.parser_context["kwargs"]
    else:
        match = request.resolver_match
        args, kwargs = (match.args, match.kwargs) if match else ((), {})
    return {str(number): value for number, value in enumerate(args)} | dict(kwargs)


_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


def handlers(callback: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each method, lower case, by which a routed view is reached, with its handler.

    A plain function is reached by any: of those it has the ones that it is decorated for.
    """
    view = view_of(callback)
    if view is None:
        config = getattr(callback, "__idempotent__", None)
        yield from ((method.lower(), callback) for method in (config.methods if config else ()))
        return
    actions = getattr(callback, "actions", None)
    for method, name in (actions or {method: method for method in _METHODS}).items():
        handler = handler_of(view, name)
        if handler is not None:
            yield method, handler


def view_of(callback: Any) -> type[View] | None:
    """Return the class behind a routed callback, DRF's or Django's; None for a plain function."""
    view: type[View] | None = getattr(callback, "cls", None) or getattr(
        callback, "view_class", None
    )
    return view


def handler_of(view: type, name: str) -> Callable[..., Any] | None:
    """Return what a view's method comes to: what `@api_view` hides in it, or what DRF's own calls, where decorated."""
    handler = getattr(view, name, None)
    if handler is None:
        return None
    handler = _uncovered(view, handler)
    calls = _CALLS.get(name) if handler.__module__ in _GENERIC else None
    called = handler_of(view, calls) if calls and not hasattr(handler, "__idempotent__") else None
    return called if hasattr(called, "__idempotent__") else handler


_GENERIC = frozenset({"rest_framework.generics", "rest_framework.mixins"})
_CALLS = {
    "post": "create",
    "put": "update",
    "patch": "partial_update",
    "partial_update": "update",
    "delete": "destroy",
}
"""Which method each of DRF's own in generic views calls."""


def _uncovered(view: type, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that `@api_view` hides in the closure of the method it makes; any other handler as it is."""
    function = getattr(handler, "__func__", handler)
    if view.__name__ == function.__qualname__.partition(".")[0] or not inspect.isfunction(function):
        return handler
    hidden: Callable[..., Any] = inspect.getclosurevars(function).nonlocals.get("func", handler)
    return hidden
