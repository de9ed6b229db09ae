"""Forget expired answers and keys, outside Celery."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from idempotency.ledger.purge import purge
from idempotency.operations import heartbeat


class Command(BaseCommand):
    """Purge until nothing expired is left, or the time is up."""

    help = "Removes answers older than RESULT_TTL and keys older than KEY_TTL, in small batches."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --seconds."""
        parser.add_argument("--seconds", type=float, default=600.0, help="stop after so long")

    def handle(self, *_: Any, **options: Any) -> None:
        """Purge and say what went."""
        purged = purge(seconds=options["seconds"])
        heartbeat.beat(name="purge", detail={"answers": purged.answers, "keys": purged.keys})
        self.stdout.write(f"{purged.answers} answers and {purged.keys} keys removed")
