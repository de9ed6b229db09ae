"""Merchants are told of what was settled: signed events to their own endpoints, by deferred work of the ledger.

    a row moves ── announce ──▶ a delivery for each endpoint that wants it     in the transaction of the move
    the work is due ── deliver ──▶ one signed POST; 2xx, or again later        under the same webhook-id

Source of the form: the Standard Webhooks specification, standardwebhooks.com.
"""

from payments.completion.announcing import OPERATION, announce, ping
from payments.completion.delivering import forget, redeliver, send_again
from payments.completion.endpoints import (
    EndpointOrder,
    change,
    disable,
    enable,
    register,
    remove,
    rotate,
)
from payments.completion.work import TIDY

__all__ = [
    "OPERATION",
    "TIDY",
    "EndpointOrder",
    "announce",
    "change",
    "disable",
    "enable",
    "forget",
    "ping",
    "redeliver",
    "register",
    "remove",
    "rotate",
    "send_again",
]
