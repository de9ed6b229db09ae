"""Which handler a request reaches, and what `@idempotent` was given for it."""

from typing import Any

from django.urls import resolve

from idempotency.decorators import Config
from idempotency.http.route import handlers


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
