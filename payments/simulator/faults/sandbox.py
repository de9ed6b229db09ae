"""What a sandbox token does to the request that moves its money: each time, and without a control route."""

from __future__ import annotations

from payments.simulator.api import payouts, tokens
from payments.simulator.api.tokens import Strike
from payments.simulator.faults.kinds import KINDS
from payments.simulator.faults.queue import Fault
from payments.simulator.record import books
from payments.simulator.record.store import Tx
from payments.simulator.wire.http import Json, Request


def fault_of(tx: Tx, request: Request, params: Json) -> Fault | None:
    """Return the fault that the request's token brings with it; look-ups are never struck."""
    strike = _strike(tx, request.path, params) if request.method == "POST" else None
    return None if strike is None else Fault(KINDS[strike.fault], strike.seconds, ())


def _strike(tx: Tx, path: str, params: Json) -> Strike | None:
    match path:
        case "/v1/accounts":
            return tokens.RECIPIENT_STRIKES.get(str(params.get("external_account", "")))
        case "/v1/refunds":
            return tokens.REFUND_STRIKES.get(_charged(tx, params))
        case "/v1/payouts":
            account = payouts.outside_account(tx, str(params.get("destination", "")))
            return tokens.PAYOUT_STRIKES.get(account)
        case _:
            return tokens.CHARGE_STRIKES.get(str(params.get("payment_method", "")))


def _charged(tx: Tx, params: Json) -> str:
    """Return the payment method of what is to be refunded, or ""."""
    for name, kind in (("payment_intent", "payment_intent"), ("charge", "charge")):
        found = books.find(tx, str(params.get(name, "")), object_type=kind)
        if found is not None:
            return str(found["payment_method"])
    return ""
