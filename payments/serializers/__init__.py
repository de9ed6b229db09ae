"""What comes in, checked strictly, and what goes out."""

from payments.serializers.endpoints import (
    EVENTS,
    KINDS,
    PING,
    SILENT,
    DeliveryOut,
    EndpointChangeIn,
    EndpointIn,
    EndpointMadeOut,
    EndpointOut,
    SecretOut,
)
from payments.serializers.fields import OrderId
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
    "EVENTS",
    "KINDS",
    "PING",
    "SILENT",
    "AccountOut",
    "DeliveryOut",
    "EndpointChangeIn",
    "EndpointIn",
    "EndpointMadeOut",
    "EndpointOut",
    "OrderId",
    "PaymentIn",
    "PaymentOut",
    "PayoutIn",
    "PayoutOut",
    "ReceiptIn",
    "ReceiptOut",
    "RefundIn",
    "RefundOut",
    "SecretOut",
    "TransferIn",
    "TransferOut",
]
