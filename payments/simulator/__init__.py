"""A stand-in payment gateway in a process of its own, speaking a part of Stripe's wire form.

It imports nothing of the rest: it is the other side of the network. Start it with
`python -m payments.simulator --data-dir DIR`, or `manage.py payments_simulator --data-dir DIR`,
and give its address to the official client:
`StripeClient("sk_test_any", base_addresses={"api": "http://127.0.0.1:12111"})`.

Test tokens (the table itself: `api/tokens.py`):

| payment_method | when confirmed |
|---|---|
| `pm_card_visa`, `_visa_debit`, `_mastercard`, `_amex` | succeeds |
| `pm_card_chargeDeclined` | 402 `card_declined`, `generic_decline` |
| `pm_card_chargeDeclinedInsufficientFunds` | 402 `card_declined`, `insufficient_funds` |
| `pm_card_chargeDeclinedLostCard` | 402 `card_declined`, `lost_card` |
| `pm_card_chargeDeclinedStolenCard` | 402 `card_declined`, `stolen_card` |
| `pm_card_chargeDeclinedExpiredCard` | 402 `expired_card` |
| `pm_card_chargeDeclinedIncorrectCvc` | 402 `incorrect_cvc` |
| `pm_card_chargeDeclinedProcessingError` | 402 `processing_error` |
| `pm_card_authenticationRequired`, `pm_card_threeDSecure2Required` | `requires_action`; with |
| | `off_session` or `error_on_requires_action`: 402 `authentication_required` |
| `pm_card_processing` | `processing`, decided by POST /_sim/webhooks or `settle_after` |
| `pm_usBankAccount` | `processing`; its refunds are `pending`, decided likewise |
| `pm_card_pendingRefund` | succeeds; its refunds are `pending`, decided likewise |
| `pm_sandbox_slow` | succeeds, and answers 2 s later |
| `pm_sandbox_lostAnswer` | succeeds, and the answer is lost, each time |
| `pm_sandbox_lateSuccess` | the answer is lost, and it succeeds 5 s later |
| `pm_sandbox_unavailable` | 503: not executed |
| `pm_sandbox_refundRefused` | succeeds; its refunds are 400 `refund_disputed_payment` |
| `pm_sandbox_refundSlow` | succeeds; a refund of it answers 2 s later |
| `pm_sandbox_refundLostAnswer` | succeeds; the answer to a refund of it is lost, each time |
| `pm_sandbox_refundLateSuccess` | succeeds; a refund of it loses its answer, and succeeds 5 s later |
| `pm_sandbox_refundUnavailable` | succeeds; a refund of it is 503: not executed |
| anything else | 400 `resource_missing` |

| destination of a payout, external_account of an account | |
|---|---|
| `acct_invalid`, or not `acct_…` | 400 `resource_missing` |
| `acct_sandbox_refused` | the account is made; paying it is 400 `balance_insufficient` |
| `acct_sandbox_slow` | the account is made; paying it answers 2 s later |
| `acct_sandbox_lostAnswer` | the account is made; the answer to paying it is lost, each time |
| `acct_sandbox_lateSuccess` | the account is made; paying it loses the answer, and succeeds 5 s later |
| `acct_sandbox_unavailable` | 503, already when the account is to be made |
| `acct_pending` | the payout is `pending`, decided by POST /_sim/webhooks or `settle_after` |
| any other `acct_…` | paid |

Control routes: `control.py`. Kinds of fault: `faults/kinds.py`. Configuration: `config.py`.
"""

from payments.simulator.config import Config
from payments.simulator.simulator import Settings, Simulator

__all__ = ["Config", "Settings", "Simulator"]
