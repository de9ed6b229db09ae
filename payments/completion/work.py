"""What the ledger runs: the deferred work that delivers, how it goes on after a lost worker, and the purge's turns."""

import uuid
from collections.abc import Mapping
from typing import Any

from idempotency.ledger import Claim
from idempotency.operations import Resolver, operation, recurring, resolver
from idempotency.resilience import RetryPolicy
from idempotency.types import Absent, LookUp, OpenStep, State
from payments.completion import delivering
from payments.completion.announcing import OPERATION
from payments.conf import conf

TIDY = recurring(
    "tidy",
    every=lambda: conf.TIDY_EVERY,
    purpose="deletes deliveries of webhooks that ended long ago",
    setting="TIDY_EVERY",
)


@operation(
    OPERATION,
    # Given up by time, `ENDPOINT_GIVE_UP`, not by number.
    policy=RetryPolicy(base=5, cap=14_400),
    max_attempts=10_000,
    time_limit=25,
)
def deliver(*, claim: Claim, input: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002 - the handler's contract
    """Tell a merchant's endpoint of one event."""
    return delivering.deliver(claim=claim, delivery_id=uuid.UUID(input["delivery"]))


@resolver(OPERATION)
class DeliveryResolver(Resolver):
    """A delivery whose worker was lost: nobody can be asked, so it is sent again under the same webhook-id."""

    def look_up(self, *, step: OpenStep) -> LookUp:
        return Absent()

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        delivering.end_delivery(claim=claim, error=error)
