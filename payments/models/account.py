"""Local accounts, and the movements between them: no outside call, one commit."""

import uuid

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse

from payments.models.base import (
    MadeUnderKey,
    amount_field,
    amount_is_positive,
    currency_is_known,
)
from payments.models.merchant import Merchant
from payments.money import shown


class Account(models.Model):
    """Money that a merchant holds here. It is never below zero, whatever is tried at once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="accounts")
    name = models.CharField(max_length=100)
    currency = models.CharField(max_length=3)
    balance = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["merchant", "name"], name="payments_account_name_unique"
            ),
            # For the transfers' composite foreign keys, which the migration adds.
            models.UniqueConstraint(
                fields=["id", "merchant", "currency"], name="payments_account_whole"
            ),
            models.CheckConstraint(
                condition=Q(balance__gte=0), name="payments_account_balance_not_negative"
            ),
            currency_is_known(),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {shown(self.balance, self.currency)}"


class Transfer(MadeUnderKey):
    """Money that went from one account of a merchant to another, in one currency.

    Composite foreign keys hold both accounts to the transfer's merchant and currency.
    """

    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, related_name="transfers")
    from_account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="sent")
    to_account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="received")
    amount = amount_field()
    currency = models.CharField(max_length=3)

    class Meta(MadeUnderKey.Meta):
        constraints = [
            *MadeUnderKey.Meta.constraints,
            amount_is_positive(),
            models.CheckConstraint(
                condition=~Q(from_account=F("to_account")), name="payments_transfer_moves_something"
            ),
        ]
        indexes = [models.Index(F("merchant"), F("created_at").desc(), name="payments_transfer_of")]

    def __str__(self) -> str:
        return f"Transfer of {shown(self.amount, self.currency)}"

    def get_absolute_url(self) -> str:
        """Return its address in the API."""
        return reverse("payments:transfer-detail", args=[self.pk])
