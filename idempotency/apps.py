"""The app's place in Django."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class IdempotencyConfig(AppConfig):
    """Install as `"idempotency"`."""

    name = "idempotency"
    label = "idempotency"
    verbose_name = "Idempotency ledger"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, and find what the installed apps register here."""
        from idempotency.checks import register_checks

        register_checks()
        # Workers, the reconciler and the web all need every app's handlers and resolvers.
        autodiscover_modules("operations", "resolvers")
