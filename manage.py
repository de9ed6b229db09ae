#!/usr/bin/env python3
"""Run a Django management command."""

import os
import sys


def main() -> None:
    """Run the command on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    # A migration or a report may take longer than a request may: see project.settings.
    os.environ.setdefault("PROCESS_ROLE", "command")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
