"""Amounts for people, currencies, and what looks like a card number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.money import CURRENCIES, DIGITS, PAYABLE, looks_like_card_number, shown


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (1200, "UAH", "12.00 UAH"),
        (5, "EUR", "0.05 EUR"),
        (-5, "EUR", "-0.05 EUR"),
        (500, "JPY", "500 JPY"),
        (1234, "KWD", "1.234 KWD"),
    ],
)
def test_an_amount_is_shown_in_major_units(amount: int, currency: str, text: str) -> None:
    assert shown(amount, currency) == text


def test_the_currencies_are_codes_that_can_be_paid_in() -> None:
    assert {"UAH", "USD", "EUR", "JPY"} <= set(CURRENCIES)
    assert not {"XXX", "XTS", "XAU", "HRK", "uah"} & set(CURRENCIES)
    assert all(len(code) == 3 and code.isupper() for code in CURRENCIES)
    assert set(DIGITS.values()) == {0, 2, 3}


def test_none_is_taken_of_which_the_gateway_counts_other_units() -> None:
    assert set(CURRENCIES) - set(PAYABLE) == {"ISK", "MGA", "UGX"}
    assert {"JPY", "KRW", "KWD", "BHD"} <= set(PAYABLE)


@pytest.mark.parametrize(
    "text",
    [
        "4242424242424242",
        "4242 4242 4242 4242",
        "4242-4242-4242-4242",
        "card 4242.4242.4242.4242 please",
        "378282246310005",
        "6011000990139424",
        "pm_4000056655665556",
    ],
)
def test_a_card_number_is_seen_however_it_is_grouped(text: str) -> None:
    assert looks_like_card_number(text)


@pytest.mark.parametrize(
    "text",
    ["pm_card_visa", "881", "4242424242424241", "order 2026-11-29", "12345678901", "0" * 30 + "1"],
)
def test_other_text_is_not_taken_for_one(text: str) -> None:
    assert not looks_like_card_number(text)


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_answered(text: str) -> None:
    assert looks_like_card_number(text) in (True, False)
