"""What payments does: each function is one use of the application, called by a view, a deferred run or a resolver."""

from payments.services.charging import (
    PaymentOrder,
    create_payment,
    end_payment,
    finish_payment,
    record_charge,
)
from payments.services.transfers import TransferOrder, transfer

__all__ = [
    "PaymentOrder",
    "TransferOrder",
    "create_payment",
    "end_payment",
    "finish_payment",
    "record_charge",
    "transfer",
]
