"""Bring the database to where the code is, and fill in the demo accounts: one start of Django."""

import os

import django
from django.conf import settings
from django.core.management import call_command


def main() -> None:
    """Migrate; in DEBUG make the demo accounts too."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    os.environ.setdefault("PROCESS_ROLE", "command")
    django.setup()
    call_command("migrate", interactive=False)
    if settings.DEBUG:
        call_command("payments_demo")


if __name__ == "__main__":
    main()
