"""New objects in the shapes of Stripe's API (version 2025-03-31 and later)."""

from __future__ import annotations

from payments.simulator.record.books import new_id
from payments.simulator.wire.http import Json

API_VERSION = "2026-10-28.endive"


def payment_intent(
    *, created: float, amount: int, currency: str, metadata: dict[str, str], **given: object
) -> Json:
    """Return a payment intent that waits for its payment method."""
    intent_id = new_id("pi")
    return {
        "id": intent_id,
        "object": "payment_intent",
        "amount": amount,
        "amount_capturable": 0,
        "amount_details": {"tip": {}},
        "amount_received": 0,
        "application": None,
        "application_fee_amount": None,
        "automatic_payment_methods": None,
        "canceled_at": None,
        "cancellation_reason": None,
        "capture_method": "automatic",
        "client_secret": f"{intent_id}_secret_{intent_id[3:]}",
        "confirmation_method": "automatic",
        "created": int(created),
        "currency": currency,
        "customer": None,
        "description": None,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "metadata": metadata,
        "next_action": None,
        "on_behalf_of": None,
        "payment_method": None,
        "payment_method_options": {},
        "payment_method_types": ["card"],
        "processing": None,
        "receipt_email": None,
        "review": None,
        "setup_future_usage": None,
        "shipping": None,
        "statement_descriptor": None,
        "statement_descriptor_suffix": None,
        "status": "requires_payment_method",
        "transfer_data": None,
        "transfer_group": None,
        **given,
    }


def charge(intent: Json, *, created: float) -> Json:
    """Return an attempt to charge an intent, undecided."""
    return {
        "id": new_id("ch"),
        "object": "charge",
        "amount": intent["amount"],
        "amount_captured": 0,
        "amount_refunded": 0,
        "balance_transaction": None,
        "captured": False,
        "created": int(created),
        "currency": intent["currency"],
        "customer": intent["customer"],
        "description": intent["description"],
        "disputed": False,
        "failure_code": None,
        "failure_message": None,
        "livemode": False,
        "metadata": dict(intent["metadata"]),
        "outcome": None,
        "paid": False,
        "payment_intent": intent["id"],
        "payment_method": intent["payment_method"],
        "receipt_email": intent["receipt_email"],
        "refunded": False,
        "status": "pending",
    }


def refund(charge: Json, *, created: float, amount: int, metadata: dict[str, str]) -> Json:
    """Return a refund of a charge, not yet decided."""
    return {
        "id": new_id("re"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": None,
        "charge": charge["id"],
        "created": int(created),
        "currency": charge["currency"],
        "destination_details": {"type": "card"},
        "metadata": metadata,
        "payment_intent": charge["payment_intent"],
        "reason": None,
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": "pending",
        "transfer_reversal": None,
    }


def payout(
    *, created: float, amount: int, currency: str, destination: str, metadata: dict[str, str]
) -> Json:
    """Return a payout to an account, not yet decided."""
    return {
        "id": new_id("po"),
        "object": "payout",
        "amount": amount,
        "arrival_date": int(created),
        "automatic": False,
        "balance_transaction": None,
        "created": int(created),
        "currency": currency,
        "description": None,
        "destination": destination,
        "failure_balance_transaction": None,
        "failure_code": None,
        "failure_message": None,
        "livemode": False,
        "metadata": metadata,
        "method": "standard",
        "original_payout": None,
        "reversed_by": None,
        "source_type": "card",
        "statement_descriptor": None,
        "status": "pending",
        "type": "bank_account",
    }


def account(*, created: float, metadata: dict[str, str], **given: object) -> Json:
    """Return an account that payouts can be sent to."""
    return {
        "id": new_id("acct"),
        "object": "account",
        "business_type": None,
        "charges_enabled": False,
        "country": "US",
        "created": int(created),
        "default_currency": "usd",
        "details_submitted": True,
        "email": None,
        "external_accounts": {"object": "list", "data": [], "has_more": False},
        "metadata": metadata,
        "payouts_enabled": True,
        "type": "custom",
        **given,
    }
