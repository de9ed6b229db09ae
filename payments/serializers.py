"""What comes in, checked strictly, and what goes out.

Unknown members are refused: a misspelt `descripton` is told at once, not dropped. Values are never converted from
another type, and never repeated in an error.
"""

import re
from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from payments.models import Account, Payment, Payout, Receipt, Refund, Transfer
from payments.money import DIGITS, MAX_AMOUNT, looks_like_card_number
from payments.services import PaymentOrder, PayoutOrder, ReceiptOrder, RefundOrder, TransferOrder

SOURCES = """A token of the gateway, never a card number. In the sandbox:

| token | what you see |
|---|---|
| `pm_card_visa` | 201 |
| `pm_card_chargeDeclined` | 402 `payment-declined`; a repeat replays it |
| `pm_card_authenticationRequired` | 402 `action-required` |
| `pm_card_processing` | 201, its status `processing` |
"""


class Text(serializers.CharField):
    """A string that is given as one, in printable characters, without a card number in it."""

    default_error_messages = {
        "invalid": "A string is wanted.",
        "unprintable": "Control characters are not accepted.",
        "card": "This looks like a card number. Send a token of the gateway instead.",
    }

    def __init__(self, *, lines: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.lines = lines

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        checked = data.replace("\n", "").replace("\r", "").replace("\t", "") if self.lines else data
        # A lone surrogate is not printable either, and no database stores it.
        if not checked.isprintable():
            self.fail("unprintable")
        if looks_like_card_number(data):
            self.fail("card")
        return str(super().to_internal_value(data))


class OrderId(Text):
    """The merchant's own number of an order: it may look like anything, so it is not searched for card numbers."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or not _ORDER_ID.fullmatch(data):
            raise ValidationError("1 to 64 visible ASCII characters are wanted.")
        return data


@extend_schema_field(
    {"type": "string", "example": "pm_card_visa", "description": "Never a card number."}
)
@extend_schema_field(
    {
        "type": "string",
        "pattern": "^(?:pm|tok|src|card|ba)_[A-Za-z0-9_]{1,72}$",
        "description": SOURCES,
    }
)
class Source(serializers.Field[str, Any, str, Any]):
    """A token by which the gateway knows a means of payment."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or looks_like_card_number(data) or _DIGITS.search(data):
            raise ValidationError("This is not a token of the gateway. Never send a card number.")
        if not _SOURCE.fullmatch(data):
            raise ValidationError("A token of the gateway is wanted, e.g. pm_card_visa.")
        return data

    def to_representation(self, value: str) -> str:
        return value


@extend_schema_field({"type": "string", "example": "acct_1a2b3c"})
@extend_schema_field(
    {
        "type": "string",
        "pattern": "^acct_[A-Za-z0-9_]{1,70}$",
        "description": "An account of the gateway; `acct_invalid` is refused.",
    }
)
class Destination(serializers.Field[str, Any, str, Any]):
    """The id of an account outside."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or not _DESTINATION.fullmatch(data):
            raise ValidationError("An account of the gateway is wanted, e.g. acct_1a2b3c.")
        return data

    def to_representation(self, value: str) -> str:
        return value


class Email(serializers.EmailField):
    """An e-mail address, given as a string."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


_ORDER_ID = re.compile(r"[\x21-\x7e]{1,64}")
_SOURCE = re.compile(r"(?:pm|tok|src|card|ba)_[A-Za-z0-9_]{1,72}")
_DESTINATION = re.compile(r"acct_[A-Za-z0-9_]{1,70}")
_DIGITS = re.compile(r"[0-9]{12}")


@extend_schema_field(
    {"type": "integer", "minimum": 1, "maximum": MAX_AMOUNT, "description": "In minor units."}
)
class Amount(serializers.Field[int, Any, int, Any]):
    """A number of minor units, written as a whole number: neither "5" nor 5.0."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise ValidationError("A whole number of minor units is wanted.")
        if not 1 <= data <= MAX_AMOUNT:
            raise ValidationError(f"A number from 1 to {MAX_AMOUNT} is wanted.")
        return data

    def to_representation(self, value: int) -> int:
        return value


@extend_schema_field({"type": "string", "pattern": "^[A-Z]{3}$", "description": "ISO 4217."})
class Currency(serializers.Field[str, Any, str, Any]):
    """An upper-case code of ISO 4217."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in DIGITS:
            raise ValidationError("An upper-case ISO 4217 code is wanted, e.g. UAH.")
        return data

    def to_representation(self, value: str) -> str:
        return value


@extend_schema_field(OpenApiTypes.UUID)
class Id(serializers.UUIDField):
    """An id, as a string."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", value="")
        return super().to_internal_value(data)


Id.default_error_messages = {"invalid": "An id is wanted."}


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


class PaymentOut(serializers.ModelSerializer[Payment]):
    """A payment as its merchant sees it. While nobody knows whether it happened, its status is `unknown`."""

    status = serializers.SerializerMethodField()
    amount_refunded = serializers.IntegerField(source="refunded_amount", read_only=True)

    class Meta:
        model = Payment
        fields = [
            "id",
            "order_id",
            "amount",
            "currency",
            "status",
            "gateway_reference",
            "amount_refunded",
            "created_at",
        ]
        read_only_fields = fields

    def get_status(self, payment: Payment) -> str:
        """Return the status: `refunded` once all of it was given back."""
        whole = payment.refunded_amount == payment.amount
        return "refunded" if payment.status == "succeeded" and whole else payment.status


class AccountOut(serializers.ModelSerializer[Account]):
    """A local account."""

    class Meta:
        model = Account
        fields = ["id", "name", "currency", "balance", "created_at"]
        read_only_fields = fields


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


class TransferOut(serializers.ModelSerializer[Transfer]):
    """A transfer that was made."""

    class Meta:
        model = Transfer
        fields = ["id", "from_account", "to_account", "amount", "currency", "created_at"]
        read_only_fields = fields


class RefundIn(Input):
    """A refund to be made."""

    amount = Amount()
    reason = Text(required=False, allow_blank=True, max_length=200, trim_whitespace=False)

    @classmethod
    def parse(cls, given: Any) -> RefundOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return RefundOrder(**cls.checked(given))


class RefundOut(serializers.ModelSerializer[Refund]):
    """A refund as its merchant sees it."""

    class Meta:
        model = Refund
        fields = [
            "id",
            "payment",
            "amount",
            "reason",
            "status",
            "gateway_reference",
            "created_at",
        ]
        read_only_fields = fields


class PayoutIn(Input):
    """A payout to be made."""

    amount = Amount()
    currency = Currency()
    destination = Destination()

    @classmethod
    def parse(cls, given: Any) -> PayoutOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return PayoutOrder(**cls.checked(given))


class PayoutOut(serializers.ModelSerializer[Payout]):
    """A payout as its merchant sees it."""

    class Meta:
        model = Payout
        fields = [
            "id",
            "amount",
            "currency",
            "destination",
            "status",
            "gateway_reference",
            "created_at",
        ]
        read_only_fields = fields


class ReceiptIn(Input):
    """A receipt to be issued. The text is kept without the blanks around it."""

    payment = Id()
    email = Email()
    text = Text(max_length=2000, lines=True)

    @classmethod
    def parse(cls, given: Any) -> ReceiptOrder:
        """Return the order that the input means. Raises: ValidationError."""
        return ReceiptOrder(**cls.checked(given))


class ReceiptOut(serializers.ModelSerializer[Receipt]):
    """A receipt as its merchant sees it."""

    class Meta:
        model = Receipt
        fields = ["id", "payment", "email", "text", "status", "issued_at", "created_at"]
        read_only_fields = fields
