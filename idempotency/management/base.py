"""What every command does where the database is away: one line, and exit code 1."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError


class DatabaseCommand(BaseCommand):
    """A command that works on the database."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run it. Raises: CommandError, also where the database cannot be asked; `--traceback` shows how."""
        try:
            return super().execute(*args, **options)
        except (OperationalError, InterfaceError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise CommandError(f"The database cannot be asked: {why}") from error
