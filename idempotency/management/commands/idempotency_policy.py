"""`manage.py idempotency_policy`: the rules for keys, as the settings have them, for a site of the host's own."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from idempotency.http import policy


class Command(BaseCommand):
    """Print the policy; change nothing."""

    help = "Print the policy for idempotency keys: format, scope, time to live, what is stored."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the form."""
        parser.add_argument("--format", choices=("markdown", "json"), default="markdown")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        text = (
            json.dumps(policy.policy(), indent=2) + "\n"
            if options["format"] == "json"
            else policy.markdown()
        )
        self.stdout.write(text, ending="")
