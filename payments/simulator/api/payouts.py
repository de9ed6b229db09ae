"""Payouts, and the accounts that receive them. Source: Stripe's API, "Payouts" and "Accounts".

Unlike Stripe, a payout names its receiving account as `destination`, and an account may name, as
`external_account`, the account of the outside world that it stands for.
"""

from __future__ import annotations

from payments.simulator.api import params, shapes, tokens
from payments.simulator.api.call import Call
from payments.simulator.api.errors import refused
from payments.simulator.api.tokens import Outcome
from payments.simulator.record import books
from payments.simulator.record.store import Tx
from payments.simulator.wire.http import Json


def create_account(call: Call) -> Json:
    """Create an account that payouts can be sent to; no money moves.

    Raises:
        ApiError: `external_account` names an account that does not exist.
    """
    metadata = params.metadata(call.params)
    outside = params.text(call.params, "external_account")
    account = shapes.account(
        created=call.now,
        metadata=metadata,
        country=params.text(call.params, "country") or "US",
        email=params.text(call.params, "email"),
        type=params.text(call.params, "type") or "custom",
    )
    if outside is not None:
        tokens.destination(outside, param="external_account")
        account["external_accounts"]["data"].append({"id": outside, "object": "bank_account"})
    call.save(account)
    return account


def create(call: Call) -> Json:
    """Pay out to an account.

    Raises:
        ApiError: there is no such account, or there is too little to pay out.
    """
    given = call.params
    payout = shapes.payout(
        created=call.now,
        amount=params.required_amount(given),
        currency=params.currency(given),
        destination=params.required_text(given, "destination"),
        metadata=params.metadata(given),
    )
    payout["description"] = params.text(given, "description")
    outcome = _outcome(call, payout["destination"])
    if outcome is Outcome.REFUSED:
        raise refused("You have insufficient funds in your account.", code="balance_insufficient")
    call.save(payout)
    call.announce("payout.created", payout)
    if outcome is Outcome.SUCCEEDS:
        succeed(call, payout)
    return payout


def succeed(call: Call, payout: Json) -> None:
    """Send the money out."""
    payout.update(status="paid", balance_transaction=books.new_id("txn"))
    call.save(payout)
    call.move_money(payout, kind="payout", amount=payout["amount"])
    call.announce("payout.paid", payout)


def fail(call: Call, payout: Json) -> None:
    """Give up a pending payout."""
    payout.update(
        status="failed",
        failure_code="account_closed",
        failure_message="The bank account has been closed.",
    )
    call.save(payout)
    call.announce("payout.failed", payout)


def _outcome(call: Call, destination: str) -> Outcome:
    """Return how a payout ends: decided by the outside account that the destination stands for."""
    return tokens.destination(outside_account(call.tx, destination), param="destination")


def outside_account(tx: Tx, destination: str) -> str:
    """Return the account of the outside world that a destination stands for: itself, where it is one."""
    account = books.find(tx, destination, object_type="account")
    outside = account["external_accounts"]["data"] if account else []
    return str(outside[0]["id"]) if outside else destination
