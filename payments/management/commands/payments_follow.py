"""`manage.py payments_follow`: ask the gateway about what it had not decided yet."""

from typing import Any

from idempotency.management.base import DatabaseCommand
from payments import services
from payments.operations import FOLLOW_UP


class Command(DatabaseCommand):
    """Ask about every payment, refund and payout that is processing; also what beat does by itself."""

    help = "Ask the gateway about payments, refunds and payouts that it had not decided yet."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it once."""
        with FOLLOW_UP.turn() as detail:
            detail["finished"] = services.follow_up()
        self.stdout.write(f"{detail['finished']} finished.")
