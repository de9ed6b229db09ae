"""The app's place in Django."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Install as `"payments"`, after `"idempotency"`, which finds its operations and resolvers."""

    name = "payments"
    label = "payments"
    verbose_name = "Payments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, and have merchants told of what moves."""
        from payments.checks import register_checks
        from payments.completion import announce
        from payments.models import moved

        register_checks()
        moved.connect(announce, dispatch_uid="payments.completion")
