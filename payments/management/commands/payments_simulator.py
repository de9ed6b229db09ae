"""Start the stand-in payment gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from payments.simulator.cli import add_flags, run


class Command(BaseCommand):
    """Serve the gateway simulator until SIGTERM; needs no database."""

    help = "Start the stand-in payment gateway, a process of its own with its own record."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the same flags as `python -m payments.simulator`."""
        add_flags(parser)

    def handle(
        self,
        *args: object,
        host: str,
        port: int,
        data_dir: Path,
        no_keys: bool,
        webhook_url: str | None,
        webhook_secret: str,
        **options: Any,
    ) -> None:
        """Run in this process."""
        run(
            host=host,
            port=port,
            data_dir=data_dir,
            no_keys=no_keys,
            webhook_url=webhook_url,
            webhook_secret=webhook_secret,
        )
