"""`manage.py idempotency_transitions`: every write of a key's state, drawn and as a table."""

from typing import Any

from django.core.management.base import BaseCommand

from idempotency.ledger import transitions


class Command(BaseCommand):
    """Print the page; change nothing."""

    help = "Print every transition of a key's state as Markdown: a drawing and a table."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        self.stdout.write(transitions.markdown(), ending="")
