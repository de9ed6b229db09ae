#!/usr/bin/env python3
"""Run a Django management command."""

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
RUNNING = ROOT / "var" / "run" / "environment"
MADE = ROOT / ".venv" / "bin" / "python"
"""The interpreter of the environment that `make run` and `make test` make."""


def use_made_environment() -> None:
    """Start again under the environment that make made, where this Python has no Django."""
    another = Path(sys.executable) != MADE
    if another and MADE.exists() and importlib.util.find_spec("django") is None:
        os.execv(MADE, [str(MADE), *sys.argv])


def join_running_stack() -> None:
    """Use the servers of `make run`, where it runs in this checkout and nothing else is said."""
    if not RUNNING.exists() or "DATABASE_URL" in os.environ:
        return
    for line in RUNNING.read_text().splitlines():
        name, _, value = line.partition("=")
        os.environ.setdefault(name, value)


def main() -> None:
    """Run the command on the command line."""
    use_made_environment()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    # A migration or a report may take longer than a request may: see project.settings.
    os.environ.setdefault("PROCESS_ROLE", "command")
    join_running_stack()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
