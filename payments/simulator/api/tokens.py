"""What each test token does: data, listed for readers in the package's docstring.

Names and meanings are Stripe's own ("Testing", test payment methods), except `pm_card_processing`,
`acct_invalid`, `acct_pending` and what begins with `pm_sandbox_` or `acct_sandbox_`, which Stripe does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from payments.simulator.api.errors import no_such_object


class Outcome(Enum):
    """How a confirmation, a refund or a payout ends."""

    SUCCEEDS = "succeeds"
    DECLINED = "declined"
    NEEDS_ACTION = "needs the customer"
    TAKES_TIME = "decided later"
    REFUSED = "refused by the state of things"


@dataclass(frozen=True)
class Decline:
    """Why a card was declined, in Stripe's codes."""

    code: str
    message: str
    decline_code: str | None = None


@dataclass(frozen=True)
class PaymentMethod:
    """What a payment method token does when confirmed, and when its charge is refunded."""

    charge: Outcome
    decline: Decline | None = None
    refund: Outcome = Outcome.SUCCEEDS
    type: str = "card"


def _declines(message: str, code: str, decline_code: str | None = None) -> PaymentMethod:
    return PaymentMethod(Outcome.DECLINED, Decline(code, message, decline_code))


@dataclass(frozen=True)
class Strike:
    """A fault that comes with a token: its kind, of `faults/kinds.py`, and how long it lasts."""

    fault: str
    seconds: float = 0.0


_SUCCEEDS = PaymentMethod(Outcome.SUCCEEDS)
_GENERIC = _declines("Your card was declined.", "card_declined", "generic_decline")
_NO_FUNDS = _declines("Your card has insufficient funds.", "card_declined", "insufficient_funds")

AUTHENTICATION_REQUIRED = Decline(
    "authentication_required",
    "Your card was declined. This transaction requires authentication.",
    "authentication_required",
)

PAYMENT_METHODS: dict[str, PaymentMethod] = {
    "pm_card_visa": _SUCCEEDS,
    "pm_card_visa_debit": _SUCCEEDS,
    "pm_card_mastercard": _SUCCEEDS,
    "pm_card_amex": _SUCCEEDS,
    "pm_card_chargeDeclined": _GENERIC,
    "pm_card_visa_chargeDeclined": _GENERIC,
    "pm_card_chargeDeclinedInsufficientFunds": _NO_FUNDS,
    "pm_card_visa_chargeDeclinedInsufficientFunds": _NO_FUNDS,
    "pm_card_chargeDeclinedLostCard": _declines(
        "Your card was declined.", "card_declined", "lost_card"
    ),
    "pm_card_chargeDeclinedStolenCard": _declines(
        "Your card was declined.", "card_declined", "stolen_card"
    ),
    "pm_card_chargeDeclinedExpiredCard": _declines("Your card has expired.", "expired_card"),
    "pm_card_chargeDeclinedIncorrectCvc": _declines(
        "Your card's security code is incorrect.", "incorrect_cvc"
    ),
    "pm_card_chargeDeclinedProcessingError": _declines(
        "An error occurred while processing your card. Try again in a little bit.",
        "processing_error",
    ),
    "pm_card_authenticationRequired": PaymentMethod(Outcome.NEEDS_ACTION),
    "pm_card_threeDSecure2Required": PaymentMethod(Outcome.NEEDS_ACTION),
    "pm_card_processing": PaymentMethod(Outcome.TAKES_TIME),
    "pm_usBankAccount": PaymentMethod(
        Outcome.TAKES_TIME, refund=Outcome.TAKES_TIME, type="us_bank_account"
    ),
    "pm_card_pendingRefund": PaymentMethod(Outcome.SUCCEEDS, refund=Outcome.TAKES_TIME),
    "pm_sandbox_slow": _SUCCEEDS,
    "pm_sandbox_lostAnswer": _SUCCEEDS,
    "pm_sandbox_lateSuccess": _SUCCEEDS,
    "pm_sandbox_unavailable": _SUCCEEDS,
    "pm_sandbox_refundRefused": PaymentMethod(Outcome.SUCCEEDS, refund=Outcome.REFUSED),
    "pm_sandbox_refundSlow": _SUCCEEDS,
    "pm_sandbox_refundLostAnswer": _SUCCEEDS,
    "pm_sandbox_refundLateSuccess": _SUCCEEDS,
    "pm_sandbox_refundUnavailable": _SUCCEEDS,
}

_SLOW, _LOST = Strike("slow_after", 2.0), Strike("reset_after")
_LATE, _UNAVAILABLE = Strike("late_success", 5.0), Strike("refuse_503")

CHARGE_STRIKES: dict[str, Strike] = {
    "pm_sandbox_slow": _SLOW,
    "pm_sandbox_lostAnswer": _LOST,
    "pm_sandbox_lateSuccess": _LATE,
    "pm_sandbox_unavailable": _UNAVAILABLE,
}
"""By the payment method that is charged."""
REFUND_STRIKES: dict[str, Strike] = {
    "pm_sandbox_refundSlow": _SLOW,
    "pm_sandbox_refundLostAnswer": _LOST,
    "pm_sandbox_refundLateSuccess": _LATE,
    "pm_sandbox_refundUnavailable": _UNAVAILABLE,
}
"""By the payment method that was charged: the charge itself succeeds."""
PAYOUT_STRIKES: dict[str, Strike] = {
    "acct_sandbox_slow": _SLOW,
    "acct_sandbox_lostAnswer": _LOST,
    "acct_sandbox_lateSuccess": _LATE,
}
"""By the outside account that is paid: making it known succeeds."""
RECIPIENT_STRIKES: dict[str, Strike] = {"acct_sandbox_unavailable": _UNAVAILABLE}
"""By the outside account that is to be made known."""

DESTINATIONS: dict[str, Outcome] = {
    "acct_invalid": Outcome.DECLINED,
    "acct_pending": Outcome.TAKES_TIME,
    "acct_sandbox_refused": Outcome.REFUSED,
}


def payment_method(token: str) -> PaymentMethod:
    """Return what a payment method does.

    Raises:
        ApiError: there is no such payment method.
    """
    if token not in PAYMENT_METHODS:
        raise no_such_object("PaymentMethod", token, param="payment_method")
    return PAYMENT_METHODS[token]


def destination(account: str, *, param: str) -> Outcome:
    """Return how a payout to an account ends: any `acct_…` is taken unless listed above.

    Raises:
        ApiError: there is no such account.
    """
    outcome = DESTINATIONS.get(account, Outcome.SUCCEEDS)
    if outcome is Outcome.DECLINED or not account.startswith("acct_"):
        raise no_such_object("destination", account, param=param)
    return outcome
