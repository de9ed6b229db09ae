"""Values that come in: of one type, never converted from another, and repeated in no error."""

import re
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from payments.money import (
    COUNTED_OTHERWISE,
    DIGITS,
    MAX_AMOUNT,
    PAYABLE,
    looks_like_card_number,
)

SOURCES = """A token of the gateway, never a card number. In the sandbox:

| token | what you see |
|---|---|
| `pm_card_visa` | 201 |
| `pm_card_chargeDeclined` | 402 `payment-declined`; a repeat replays it |
| `pm_card_authenticationRequired` | 402 `action-required` |
| `pm_card_processing` | 201, its status `processing` |
| `pm_sandbox_slow` | 201 after 2 seconds; the same request meanwhile: 409 `in-progress` |
| `pm_sandbox_lostAnswer` | 504 `outcome-unknown`, repeats 409; after some seconds 201, replayed |
| `pm_sandbox_lateSuccess` | the same, where the gateway did it 5 seconds after its answer was lost |
| `pm_sandbox_unavailable` | 503 `gateway-unavailable`: nothing was done, and the key is free |
| `pm_card_pendingRefund` | 201; a refund of it ends with the status `processing` |
| `pm_sandbox_refundRefused` | 201; a refund of it ends with `refund-refused` |
| `pm_sandbox_refundSlow` | 201; a refund of it takes 2 seconds |
| `pm_sandbox_refundLostAnswer`, `pm_sandbox_refundLateSuccess` | 201; a refund of it is `unknown` for some seconds |
| `pm_sandbox_refundUnavailable` | 201; a refund of it is tried again, and ends with `gave-up` |

Several failures in a row open the circuit for everybody: 503 `circuit-open`, for some seconds.
"""


DESTINATIONS = """An account of the gateway. In the sandbox any is paid but:

| account | what becomes of the operation |
|---|---|
| `acct_invalid` | `error.code` `payout-refused`: there is no such account |
| `acct_sandbox_refused` | `result.status` `refused`: too little money to pay out |
| `acct_pending` | `result.status` `processing` |
| `acct_sandbox_slow` | takes 2 seconds |
| `acct_sandbox_lostAnswer`, `acct_sandbox_lateSuccess` | `unknown` for some seconds, then `result` |
| `acct_sandbox_unavailable` | tried again, then `error.code` `gave-up` |
"""


URL = (
    r"https?://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
    r"(?:[/?](?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?"
)
"""Of RFC 3986 what an endpoint can have: a host, a port, a path and a query; neither login nor fragment."""


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


@extend_schema_field({"type": "string", "pattern": "^[!-~]{1,64}$"})
class OrderId(Text):
    """The merchant's own number of an order: it may look like anything, so it is not searched for card numbers."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or not _ORDER_ID.fullmatch(data):
            raise ValidationError("1 to 64 visible ASCII characters are wanted.")
        return data


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


@extend_schema_field(
    {
        "type": "string",
        "pattern": "^acct_[A-Za-z0-9_]{1,70}$",
        "description": DESTINATIONS,
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


@extend_schema_field(
    {
        "type": "string",
        "maxLength": 500,
        "pattern": f"^{URL}$",
        "example": "https://shop.example/events",
        "description": "`https` only, except in the sandbox.",
    }
)
class Url(serializers.Field[str, Any, str, Any]):
    """The address of an endpoint, given as a string; whether it can be one is for `completion` to say."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or not _URL.fullmatch(data):
            raise ValidationError("An address is wanted, e.g. https://shop.example/events.")
        return data

    def to_representation(self, value: str) -> str:
        return value


class Email(serializers.EmailField):
    """An e-mail address, given as a string."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


_URL = re.compile(URL)
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


@extend_schema_field({"type": "string", "enum": list(PAYABLE), "description": "ISO 4217."})
class Currency(serializers.Field[str, Any, str, Any]):
    """An upper-case code of ISO 4217, of a currency whose minor unit the gateway counts in, too."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in DIGITS:
            raise ValidationError("An upper-case ISO 4217 code is wanted, e.g. UAH.")
        if data in COUNTED_OTHERWISE:
            raise ValidationError(f"No payment is made in {data}: its minor unit is not agreed on.")
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
