"""When a key is looked up again, and when a person is asked (R38)."""

import uuid

from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.ledger import lookups
from idempotency.ledger.evidence import Snapshot
from idempotency.ledger.phases import phase


def put_off(
    key_id: uuid.UUID,
    *,
    answered: bool,
    needs_person: str = "",
    seen: Snapshot | None = None,
    after: float | None = None,
) -> None:
    wait = after if after is not None else pause(seen.lookups if seen else 0)
    with phase(using=conf.DATABASE) as phases:
        lookups.look_again(
            connection=phases.connection,
            key_id=key_id,
            after=wait,
            answered=answered,
            needs_person=needs_person,
        )


def pause(number: int) -> float:
    """Return seconds to the next look-up: doubling up to the cap, jittered so that an outage ends smoothly."""
    longest = min(conf.LOOKUP_BACKOFF_CAP, conf.RECONCILE_EVERY * 2 ** min(number, 20))
    return SYSTEM.uniform(longest / 2, longest)
