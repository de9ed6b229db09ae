"""The tables. Their constraints keep the promises; the code only asks."""

from payments.models.account import Account, Transfer
from payments.models.base import moved
from payments.models.endpoint import Delivery, DeliveryAttempt, Endpoint, EndpointSecret
from payments.models.merchant import ApiUser, Merchant
from payments.models.payment import Payment, Refund
from payments.models.payout import Payout
from payments.models.receipt import Receipt

__all__ = [
    "Account",
    "ApiUser",
    "Delivery",
    "DeliveryAttempt",
    "Endpoint",
    "EndpointSecret",
    "Merchant",
    "Payment",
    "Payout",
    "Receipt",
    "Refund",
    "Transfer",
    "moved",
]
