"""The app's place in Django."""

from importlib.util import find_spec

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class IdempotencyConfig(AppConfig):
    """Install as `"idempotency"`."""

    name = "idempotency"
    label = "idempotency"
    verbose_name = "Idempotency ledger"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, begin to listen, and find what the installed apps register here."""
        from idempotency import listeners
        from idempotency.checks import register_checks

        register_checks()
        listeners.connect()
        if find_spec("prometheus_client"):
            from idempotency import metrics

            metrics.connect()
        # Workers, the reconciler and the web all need every app's handlers and resolvers.
        autodiscover_modules("operations", "resolvers")
