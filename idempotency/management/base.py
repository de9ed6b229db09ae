"""What every command does where the database is away, or refuses it: one line, and exit code 1."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, OperationalError


class DatabaseCommand(BaseCommand):
    """A command that works on the database."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run it.

        Raises: CommandError, also where the database cannot be asked, or refuses, e.g. one that takes no writes or was
            never migrated; `--traceback` shows how.
        """
        try:
            return super().execute(*args, **options)
        except (DatabaseError, InterfaceError) as error:
            away = isinstance(error, OperationalError | InterfaceError)
            what = "The database cannot be asked" if away else "The database refuses it"
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise CommandError(f"{what}: {why}") from error
