"""Money: integers in minor units, and the currencies of ISO 4217."""

import re

# Active currencies by their number of minor digits; funds, metals and test codes that nothing can be paid in are left
# out. Source: ISO 4217, list one, published 2026-01-01.
_BY_DIGITS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC "
        "CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR "
        "JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD "
        "NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN "
        "SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
    ),
    3: "BHD IQD JOD KWD LYD OMR TND",
}
DIGITS = {code: digits for digits, codes in _BY_DIGITS.items() for code in codes.split()}
CURRENCIES = tuple(sorted(DIGITS))
COUNTED_OTHERWISE = frozenset({"ISK", "MGA", "UGX"})
"""Currencies of which the gateway counts other units than ISO 4217, so that one number would be two sums a hundredfold
apart: none is paid in. Source: Stripe's documentation, "Supported currencies", zero-decimal and special cases."""
PAYABLE = tuple(code for code in CURRENCIES if code not in COUNTED_OTHERWISE)

MAX_AMOUNT = 99_999_999
"""The largest amount of one operation: eight digits. Source: Stripe's API, "PaymentIntents", amount."""


def shown(amount: int, currency: str) -> str:
    """Return an amount for people: `12.00 UAH`."""
    digits = DIGITS.get(currency, 2)
    if digits == 0:
        return f"{amount} {currency}"
    whole, rest = divmod(abs(amount), 10**digits)
    return f"{'-' if amount < 0 else ''}{whole}.{rest:0{digits}d} {currency}"


def looks_like_card_number(text: str) -> bool:
    """Whether the text holds something that may be a card number: 12 to 19 digits, however grouped, that check out.

    Source: ISO/IEC 7812-1, annex B (the Luhn formula).
    """
    return any(_checks_out(re.sub(r"\D", "", run.group())) for run in _DIGIT_RUN.finditer(text))


_DIGIT_RUN = re.compile(r"\d(?:[ .\-_]?\d){11,18}(?!\d)", re.ASCII)


def _checks_out(digits: str) -> bool:
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0
