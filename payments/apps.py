"""The app's place in Django."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Install as `"payments"`, after `"idempotency"`."""

    name = "payments"
    label = "payments"
    verbose_name = "Payments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is registered by being imported."""
        from payments import resolvers  # noqa: F401 - registers the resolvers
