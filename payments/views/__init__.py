"""The API: each handler parses, makes one call into the services, and answers."""

from payments.views.accounts import AccountViewSet, TransferViewSet
from payments.views.deferred import PayoutViewSet, ReceiptViewSet
from payments.views.endpoints import EndpointViewSet
from payments.views.payments import PaymentViewSet

__all__ = [
    "AccountViewSet",
    "EndpointViewSet",
    "PaymentViewSet",
    "PayoutViewSet",
    "ReceiptViewSet",
    "TransferViewSet",
]
