"""What comes in is checked strictly, converted never, and repeated in no error."""

import json
from typing import Any

import pytest
from rest_framework.exceptions import ValidationError

from payments.serializers import PaymentIn, PayoutIn, ReceiptIn, RefundIn, TransferIn
from payments.services import PaymentOrder

PAYMENT: dict[str, Any] = {
    "order_id": "881",
    "amount": 1200,
    "currency": "UAH",
    "source": "pm_card_visa",
}
CARD = "4242424242424242"


def test_a_payment_is_read_as_sent() -> None:
    order = PaymentIn.parse(PAYMENT | {"description": " two coffees "})

    assert order == PaymentOrder(**PAYMENT, description=" two coffees ")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("amount", 0),
        ("amount", -1),
        ("amount", 100_000_000),
        ("amount", 12.0),
        ("amount", "1200"),
        ("amount", True),
        ("amount", None),
        ("amount", 10**40),
        ("currency", "uah"),
        ("currency", "XXX"),
        ("currency", ["UAH"]),
        ("order_id", ""),
        ("order_id", "x" * 65),
        ("order_id", 881),
        ("order_id", "8 1"),
        ("order_id", "é"),
        ("order_id", "a\x00"),
        ("source", "visa"),
        ("source", CARD),
        ("source", 4242424242424242),
        ("source", f"pm_{CARD}"),
        ("source", "pm_1234567890123"),
        ("source", "pm_card visa"),
        ("source", {"pm_card_visa": 1}),
        ("description", "x" * 201),
        ("description", 5),
        ("description", f"card {CARD}"),
        ("description", "a\x00b"),
        ("description", "\ud800"),
        ("descripton", "misspelt"),
    ],
)
def test_a_wrong_member_is_refused_by_its_name(member: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        PaymentIn.parse(PAYMENT | {member: value})

    assert list(refused.value.detail) == [member]


@pytest.mark.parametrize("code", ["ISK", "MGA", "UGX"])
def test_a_currency_is_refused_of_which_the_gateway_counts_other_units(code: str) -> None:
    """It counts hundredths of a krona, and whole ariary: the same number is another sum there."""
    with pytest.raises(ValidationError, match=f"No payment is made in {code}"):
        PaymentIn.parse(PAYMENT | {"currency": code})


@pytest.mark.parametrize("member", PAYMENT)
def test_a_missing_member_is_refused(member: str) -> None:
    with pytest.raises(ValidationError):
        PaymentIn.parse({name: value for name, value in PAYMENT.items() if name != member})


@pytest.mark.parametrize("given", [None, [], [PAYMENT], "x", 5])
def test_what_is_no_object_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        PaymentIn.parse(given)


@pytest.mark.parametrize("member", ["source", "description", "currency", CARD])
def test_a_card_number_is_never_repeated(member: str) -> None:
    with pytest.raises(ValidationError) as refused:
        PaymentIn.parse(PAYMENT | {member: CARD})

    assert CARD not in json.dumps(refused.value.detail)


@pytest.mark.parametrize(
    "body",
    [
        {"from_account": "x", "to_account": "x", "amount": 1},
        {"from_account": 5, "to_account": 6, "amount": 1},
        {"from_account": "0" * 32, "to_account": "0" * 32, "amount": 1},
    ],
)
def test_a_transfer_needs_two_accounts(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TransferIn.parse(body)


@pytest.mark.parametrize("destination", ["", "x", "acct_", "acct_a b", f"{CARD}", 5, None])
def test_a_payout_needs_an_account_of_the_gateway(destination: Any) -> None:
    with pytest.raises(ValidationError):
        PayoutIn.parse({"amount": 1, "currency": "UAH", "destination": destination})


def test_a_receipt_is_trimmed_and_may_have_lines() -> None:
    given = {"payment": "0" * 32, "email": "a@example.com", "text": " one\ntwo "}

    assert ReceiptIn.parse(given).text == "one\ntwo"


@pytest.mark.parametrize(
    "wrong", [{"email": "a"}, {"email": 5}, {"text": ""}, {"text": "  "}, {"text": "x" * 2001}]
)
def test_a_receipt_that_says_nothing_is_refused(wrong: dict[str, Any]) -> None:
    given = {"payment": "0" * 32, "email": "a@example.com", "text": "hello"}
    with pytest.raises(ValidationError):
        ReceiptIn.parse(given | wrong)


def test_a_refund_may_have_no_reason() -> None:
    assert RefundIn.parse({"amount": 5}).reason == ""
