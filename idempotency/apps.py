"""The app's place in Django."""

from django.apps import AppConfig


class IdempotencyConfig(AppConfig):
    """Install as `"idempotency"`."""

    name = "idempotency"
    label = "idempotency"
    verbose_name = "Idempotency ledger"
    default_auto_field = "django.db.models.BigAutoField"
