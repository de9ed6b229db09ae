"""Moving money between two accounts of a merchant: no outside call, one commit."""

import uuid
from dataclasses import dataclass

from django.db.models import F

from idempotency.ledger import Claim
from payments.exceptions import AccountUnknown, CurrenciesDiffer, InsufficientFunds
from payments.models import Account, Merchant, Transfer
from payments.money import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOrder:
    """What a merchant wants to move, between which accounts."""

    from_account: uuid.UUID
    to_account: uuid.UUID
    amount: int


def transfer(*, merchant: Merchant, order: TransferOrder, claim: Claim) -> Transfer:
    """Move money between two accounts of one merchant and one currency; requires the claim's transaction.

    Raises:
        AccountUnknown, CurrenciesDiffer: the order is wrong.
        InsufficientFunds: the account holds less; nothing was moved.
    """
    source, target = _locked(merchant, order)
    if source.currency != target.currency:
        raise CurrenciesDiffer
    # First, so that a refusal says what was refused.
    claim.link(
        summary=f"Transfer of {shown(order.amount, source.currency)} from {source.name} to {target.name}"
    )
    made, new = Transfer.objects.made_once(
        claim=claim,
        merchant=merchant,
        from_account=source,
        to_account=target,
        amount=order.amount,
        currency=source.currency,
    )
    if new:
        _move(source, target, order.amount)
    claim.link(resource=made.get_absolute_url(), reference=str(made.pk))
    return made


def _locked(merchant: Merchant, order: TransferOrder) -> tuple[Account, Account]:
    """Lock both accounts in the order of their ids: opposite transfers never wait for each other in a circle."""
    found = {
        account.pk: account
        for account in Account.objects.filter(
            merchant=merchant, pk__in=[order.from_account, order.to_account]
        )
        .order_by("pk")
        .select_for_update(no_key=True)
    }
    for field in ("from_account", "to_account"):
        if getattr(order, field) not in found:
            raise AccountUnknown(field)
    return found[order.from_account], found[order.to_account]


def _move(source: Account, target: Account, amount: int) -> None:
    payer = Account.objects.filter(pk=source.pk, balance__gte=amount)
    if not payer.update(balance=F("balance") - amount):
        raise InsufficientFunds
    Account.objects.filter(pk=target.pk).update(balance=F("balance") + amount)
