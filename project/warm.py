"""Load, at its start, what a process would otherwise load while its first caller waits."""

from importlib import import_module

from django.urls import get_resolver


def load() -> None:
    """Import the routes, with all views behind them, and the gateway's library; connect nowhere."""
    # Read for its effect: Django imports the routes when it is first asked for them.
    _ = get_resolver().url_patterns
    import_module("payments.gateway.stripe")
