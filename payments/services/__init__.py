"""What payments does: each function is one use of the application, called by a view, a deferred run or a resolver."""

from payments.services.charging import (
    CHARGE,
    PaymentOrder,
    create_payment,
    end_payment,
    finish_payment,
    record_charge,
)
from payments.services.news import about, follow_up, headline, take_in
from payments.services.payouts import (
    PAYOUT,
    RECIPIENT,
    PayoutOrder,
    end_payout,
    record_payout,
    request_payout,
    send_payout,
)
from payments.services.receipts import ReceiptOrder, end_receipt, issue_receipt, request_receipt
from payments.services.refunding import (
    REFUND,
    RefundOrder,
    end_refund,
    record_refund,
    request_refund,
    send_refund,
)
from payments.services.transfers import TransferOrder, transfer

__all__ = [
    "CHARGE",
    "PAYOUT",
    "RECIPIENT",
    "REFUND",
    "PaymentOrder",
    "PayoutOrder",
    "ReceiptOrder",
    "RefundOrder",
    "TransferOrder",
    "about",
    "create_payment",
    "end_payment",
    "end_payout",
    "end_receipt",
    "end_refund",
    "finish_payment",
    "follow_up",
    "headline",
    "issue_receipt",
    "record_charge",
    "record_payout",
    "record_refund",
    "request_payout",
    "request_receipt",
    "request_refund",
    "send_payout",
    "send_refund",
    "take_in",
    "transfer",
]
