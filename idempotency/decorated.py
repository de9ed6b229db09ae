"""Which handler a request reaches, and what `@idempotent` was given for it."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import resolve
from django.views import View

from idempotency.decorators import Config

_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


def handlers(callback: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each method, lower case, by which a routed view is reached, with its handler.

    A plain function is reached by any: of those it has the ones that it is decorated for.
    """
    view = view_of(callback)
    if view is None:
        config = config_of(callback)
        yield from ((method.lower(), callback) for method in (config.methods if config else ()))
        return
    actions = getattr(callback, "actions", None)
    for method, name in (actions or {method: method for method in _METHODS}).items():
        handler = getattr(view, name, None)
        if handler is not None:
            yield method, uncovered(view, handler)


def view_of(callback: Any) -> type[View] | None:
    """Return the class behind a routed callback, DRF's or Django's; None for a plain function."""
    view: type[View] | None = getattr(callback, "cls", None) or getattr(
        callback, "view_class", None
    )
    return view


def uncovered(view: type, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that `@api_view` hides in the closure of the method it makes; any other handler as it is."""
    function = getattr(handler, "__func__", handler)
    if view.__name__ == function.__qualname__.partition(".")[0] or not inspect.isfunction(function):
        return handler
    hidden: Callable[..., Any] = inspect.getclosurevars(function).nonlocals.get("func", handler)
    return hidden


def config_of(handler: Any) -> Config | None:
    """Return what `@idempotent` was given; None where the handler is not decorated."""
    config: Config | None = getattr(handler, "__idempotent__", None)
    return config


def config_at(path: str, method: str) -> Config | None:
    """Return the config of the handler that a request reaches; None where no key counts there.

    Raises: django.urls.Resolver404.
    """
    for name, handler in handlers(resolve(path).func):
        config = config_of(handler)
        if name.upper() == method and config is not None and method in config.methods:
            return config
    return None
