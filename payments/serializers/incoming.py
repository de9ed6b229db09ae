"""What comes in. Unknown members are refused: a misspelt `descripton` is told at once, not dropped."""

import re
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from payments.serializers.fields import (
    Amount,
    Currency,
    Destination,
    Email,
    Id,
    OrderId,
    Source,
    Text,
)
from payments.services import PaymentOrder, PayoutOrder, ReceiptOrder, RefundOrder, TransferOrder


class Input(serializers.Serializer[Any]):
    """An object with these members and no others."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (
            unknown := [name for name in data if name not in self.fields]
        ):
            # Only what looks like a name is repeated: it might be a secret in the wrong place.
            named = sorted(name for name in unknown if re.fullmatch(r"[A-Za-z_]{1,40}", str(name)))
            raise ValidationError(
                {name: ["There is no such member."] for name in named or ["other"]}
            )
        return super().to_internal_value(data)

    @classmethod
    def checked(cls, given: Any) -> dict[str, Any]:
        """Return the members, checked. Raises: ValidationError."""
        serializer = cls(data=given)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)


class PaymentIn(Input):
    """A payment to be made."""

    order_id = OrderId()
    amount = Amount()
    currency = Currency()
    source = Source()  # type: ignore[assignment]  # DRF takes it off the class, where the name has another meaning
    description = Text(required=False, allow_blank=True, max_length=200, trim_whitespace=False)

    @classmethod
    def parse(cls, given: Any) -> PaymentOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return PaymentOrder(**cls.checked(given))


class TransferIn(Input):
    """A transfer to be made."""

    from_account = Id()
    to_account = Id()
    amount = Amount()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["from_account"] == attrs["to_account"]:
            raise ValidationError({"to_account": ["Another account than from_account is wanted."]})
        return attrs

    @classmethod
    def parse(cls, given: Any) -> TransferOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return TransferOrder(**cls.checked(given))


class RefundIn(Input):
    """A refund to be made."""

    amount = Amount()
    reason = Text(required=False, allow_blank=True, max_length=200, trim_whitespace=False)

    @classmethod
    def parse(cls, given: Any) -> RefundOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return RefundOrder(**cls.checked(given))


class PayoutIn(Input):
    """A payout to be made."""

    amount = Amount()
    currency = Currency()
    destination = Destination()

    @classmethod
    def parse(cls, given: Any) -> PayoutOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return PayoutOrder(**cls.checked(given))


class ReceiptIn(Input):
    """A receipt to be issued. The text is kept without the blanks around it."""

    payment = Id()
    email = Email()
    text = Text(max_length=2000, lines=True)

    @classmethod
    def parse(cls, given: Any) -> ReceiptOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return ReceiptOrder(**cls.checked(given))
