"""Deciding what was left open: a processing payment, a customer's action, a pending refund."""

from __future__ import annotations

from payments.simulator.api import charging, payouts, refunds
from payments.simulator.api.call import Call
from payments.simulator.record import books
from payments.simulator.wire.http import Json

_OPEN = {
    "payment_intent": ("processing", "requires_action"),
    "refund": ("pending",),
    "payout": ("pending",),
}


class NotOpen(Exception):
    """There is nothing to decide about this object."""


def settle(call: Call, object_id: str, *, succeeded: bool) -> Json:
    """Decide an open payment intent, refund or payout, and announce it; return the object.

    Raises:
        NotOpen: it is unknown, or decided already.
    """
    thing = books.find(call.tx, object_id)
    if thing is None:
        raise NotOpen(f"there is no {object_id}")
    if thing["object"] not in _OPEN or thing["status"] not in _OPEN[thing["object"]]:
        raise NotOpen(f"{object_id} is not open: {thing.get('status')}")
    match thing["object"], succeeded:
        case "payment_intent", True:
            charging.pay(call, thing)
        case "payment_intent", False:
            charging.turn_down(call, thing)
        case "refund", True:
            refunds.succeed(call, thing)
        case "refund", False:
            refunds.fail(call, thing)
        case "payout", True:
            payouts.succeed(call, thing)
        case _:
            payouts.fail(call, thing)
    return thing
