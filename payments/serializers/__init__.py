"""What comes in, checked strictly, and what goes out."""

from payments.serializers.incoming import PaymentIn, PayoutIn, ReceiptIn, RefundIn, TransferIn
from payments.serializers.outgoing import (
    AccountOut,
    PaymentOut,
    PayoutOut,
    ReceiptOut,
    RefundOut,
    TransferOut,
)

__all__ = [
    "AccountOut",
    "PaymentIn",
    "PaymentOut",
    "PayoutIn",
    "PayoutOut",
    "ReceiptIn",
    "ReceiptOut",
    "RefundIn",
    "RefundOut",
    "TransferIn",
    "TransferOut",
]
