"""Forget expired answers and keys, outside Celery."""

import math
from typing import Any

from django.core.management.base import CommandError, CommandParser

from idempotency.ledger.purge import purge
from idempotency.management.base import DatabaseCommand
from idempotency.operations import heartbeat


class Command(DatabaseCommand):
    """Purge until nothing expired is left, or the time is up."""

    help = "Removes answers older than RESULT_TTL and keys older than KEY_TTL, in small batches."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --seconds and --pause."""
        parser.add_argument("--seconds", type=float, default=600.0, help="stop after so long")
        parser.add_argument(
            "--pause",
            type=float,
            help="pause after each batch, in times of what it took; 0: none; default: PURGE_PAUSE",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Purge and say what went."""
        if not options["seconds"] >= 0:
            raise CommandError("--seconds must be a number that is not negative")
        if options["pause"] is not None and not 0 <= options["pause"] < math.inf:
            raise CommandError("--pause must be a number that is not negative")
        purged = purge(seconds=options["seconds"], pause=options["pause"])
        heartbeat.beat(name="purge", detail={"answers": purged.answers, "keys": purged.keys})
        self.stdout.write(f"{purged.answers} answers and {purged.keys} keys removed")
