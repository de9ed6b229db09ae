"""System checks: what cannot keep its promise is refused before the first request.

`idempotency.E001`–`E014` and `W001`–`W006` are about the settings (`settings`), `E020`–`E027` and
`W020`–`W022` about decorated views (`routes`), `W030`–`W033` about what surrounds them (`middleware`),
`E040`–`E044` and `W040`–`W048` about Celery (`deferred`).
"""

from django.core.checks import Tags, register

from idempotency.checks.deferred import check_celery
from idempotency.checks.middleware import check_middleware
from idempotency.checks.routes import check_routes
from idempotency.checks.settings import check_settings

__all__ = ["check_celery", "check_middleware", "check_routes", "check_settings", "register_checks"]


def register_checks() -> None:
    """Register every check; called once the apps are ready."""
    register(check_settings, Tags.compatibility)
    register(check_routes, Tags.urls)
    register(check_middleware, Tags.compatibility)
    register(check_celery, Tags.compatibility)
