"""The kit for Django's own test runner: `TEST_RUNNER = "idempotency.testing.runner.Runner"`, or inherit from it."""

from typing import Any

from django.apps import apps
from django.db import connections
from django.db.models.signals import post_migrate
from django.test.runner import DiscoverRunner

from idempotency.testing.database import allow_truncation, has_the_ledger


class Runner(DiscoverRunner):
    """Let the test databases be emptied between tests, those of `--parallel` too."""

    def setup_databases(self, **kwargs: Any) -> Any:
        """Make them as Django does."""
        # As soon as there are tables: the databases of `--parallel` are copies of the first.
        sender = apps.get_app_config("idempotency")
        post_migrate.connect(_made, sender=sender)
        try:
            return super().setup_databases(**kwargs)
        finally:
            post_migrate.disconnect(_made, sender=sender)


def _made(*, using: str, **_: Any) -> None:
    if has_the_ledger(using):
        allow_truncation(connections[using])
