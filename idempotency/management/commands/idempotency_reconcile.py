"""`manage.py idempotency_reconcile`: settle unknown and lapsed keys now, without waiting for beat."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from idempotency import reconciliation
from idempotency.management.base import DatabaseCommand
from idempotency.operations import heartbeat
from idempotency.reconciliation import Report


class Command(DatabaseCommand):
    """Reconcile what is due, one key, or everything."""

    help = "Ask the other side about keys whose outcome is unknown, and settle them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the choices."""
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--key", type=uuid.UUID, help="only the key with this id (operation_ref)"
        )
        which.add_argument("--all", action="store_true", help="go on until nothing is due")
        parser.add_argument("--dry-run", action="store_true", help="say what is due; ask nobody")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run and print one line a key."""
        if options["key"] and options["dry_run"]:
            raise CommandError("--dry-run shows what is due; a single key is asked about or not.")
        if options["key"]:
            report = reconciliation.reconcile(key_id=options["key"])
            if report.state is None:
                raise CommandError("No key has this id, or not any more.")
            self._print(report)
            return
        total = 0
        while reports := reconciliation.run(dry_run=options["dry_run"]):
            for report in reports:
                self._print(report)
            total += len(reports)
            if options["dry_run"] or not options["all"]:
                break
        if not options["dry_run"]:
            heartbeat.beat(name="reconcile", detail={"keys": total})
        self.stdout.write(f"{total} key(s)")

    def _print(self, report: Report) -> None:
        state = report.state or "gone"
        self.stdout.write(
            f"{report.key_id}  {report.decision:13} {state:12} {report.detail}".rstrip()
        )
