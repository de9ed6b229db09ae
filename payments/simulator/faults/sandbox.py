"""What a sandbox token does to the request that charges it: each time, and without a control route."""

from __future__ import annotations

from payments.simulator.api import tokens
from payments.simulator.faults.kinds import KINDS
from payments.simulator.faults.queue import Fault
from payments.simulator.wire.http import Json, Request


def fault_of(request: Request, params: Json) -> Fault | None:
    """Return the fault that the request's payment method brings with it; look-ups are never struck."""
    if request.method != "POST":
        return None
    strike = tokens.SANDBOX.get(str(params.get("payment_method", "")))
    return None if strike is None else Fault(KINDS[strike.fault], strike.seconds, ())
