"""The app's place in Django."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Install as `"payments"`, after `"idempotency"`."""

    name = "payments"
    label = "payments"
    verbose_name = "Payments"
    default_auto_field = "django.db.models.BigAutoField"
