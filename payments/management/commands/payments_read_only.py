"""`manage.py payments_read_only on --reason "…"`: refuse all writes of the API, in every process, until `off`."""

import getpass
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from idempotency.resilience import StoreUnavailable
from payments.degradation import read_only


class Command(BaseCommand):
    """Switch read-only mode, or tell how it stands."""

    help = "Refuse the API's writes with 503 while reads go on; deferred work under way is not stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the mode and why."""
        parser.add_argument("mode", choices=["on", "off", "status"])
        parser.add_argument("--reason", default="", help="told to every caller who is refused")

    def handle(self, *args: Any, mode: str, reason: str, **options: Any) -> None:
        """Switch, then say how it stands.

        Raises:
            CommandError: no reason is given for switching it on, or the store cannot be asked.
        """
        if mode == "on" and not reason.strip():
            raise CommandError("Say why with --reason: callers are told.")
        switch = read_only()
        try:
            if mode == "on":
                switch.on(actor=_who(), reason=reason)
            elif mode == "off":
                switch.off(actor=_who(), reason=reason)
            why = switch.ask()
        except StoreUnavailable as error:
            raise CommandError(
                "The store cannot be reached: each process goes by what it heard last."
            ) from error
        self.stdout.write(f"read-only: {why}" if why is not None else "writes are taken")


def _who() -> str:
    """Return who switches; a container's user often has a number only."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
