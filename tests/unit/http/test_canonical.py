"""The canonical form of JSON (R7): its equivalence classes are exactly those of the rule."""

import contextlib
import json
import random
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idempotency.http.canonical import MAX_DEPTH, NotCanonical, canonical


def form(text: str | bytes) -> bytes:
    return canonical(body=text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # C1
        ('{"a":1,"b":2}', '{ "b" : 2,\n\t"a":1 }'),
        ('[{"x":{"a":1,"b":2}}]', '[{"x":{"b":2,"a":1}}]'),
        ('"\\u00e9\\/\\n"', '"é/\\u000a"'),
        ('{"\\u0061":1}', '{"a":1}'),
        ('"\\ud83d\\ude00"', '"😀"'),
        # C5: a client that re-serialises numbers
        ("10", "10.0"),
        ("10", "10.00"),
        ("10", "1e1"),
        ("10", "1E+1"),
        ("10", "100e-1"),
        ("0", "-0"),
        ("0", "-0.0e5"),
        ("0.5", "5e-1"),
        ("0.50", "0.5"),
        ("-1.25", "-125E-2"),
        ("1e308", "1" + "0" * 308),
        ("9007199254740993", "9007199254740993.0"),
    ],
)
def test_the_same_meaning_has_the_same_form(one: str, other: str) -> None:
    assert form(one) == form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1,2]", "[2,1]"),
        # C5: floats would merge these
        ("9007199254740992", "9007199254740993"),
        ("19.999999999999999999", "20.0"),
        ("0.1", "0.10000000000000000000000001"),
        ("1e-400", "2e-400"),
        ("5", "-5"),
        ("0.5", "-0.5"),
        # C9: no normalisation
        ('"\u00e9"', '"e\u0301"'),
        ('"1"', '"\uff11"'),
        # C14: as sent
        ("null", '""'),
        ("{}", '{"name":null}'),
        ('"bob"', '" bob "'),
        ("5", '"5"'),
        ("true", "1"),
        ("false", "0"),
        ("false", "null"),
        ("[]", "{}"),
        ("[[]]", "[]"),
        # What stands for an exact decimal is written by nothing else.
        ("1.5", '["NaN","15e-1"]'),
        ("1.5", '[null,"15e-1"]'),
        ("1.5", '"15e-1"'),
        ("[1.5]", '[["15e-1"]]'),
    ],
)
def test_another_meaning_has_another_form(one: str, other: str) -> None:
    assert form(one) != form(other)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # C6
        ('{"amount":100,"amount":1}', "twice"),
        ('{"amount":1,"amount":1}', "twice"),
        ('{"a":1,"\\u0061":1}', "twice"),
        ('[{"x":{"b":1,"b":2}}]', "twice"),
        # C7
        ("1e400", "out of range"),
        ("-1e400", "out of range"),
        ("1.8e308", "out of range"),
        ("1e999999999", "out of range"),
        ("0e999999999", "out of range"),
        ("1e-999999999", "out of range"),
        ("1e99999999999999999999999", "out of range"),
        ("9" * 400 + ".0", "out of range"),
        ("NaN", "not JSON"),
        ("Infinity", "not JSON"),
        ('{"z":-Infinity}', "not JSON"),
        ("1" * 5000, "too many digits"),
        # C9
        ('"\\ud800"', "surrogate"),
        ('{"\\udc00":1}', "surrogate"),
        ('"\\ude00\\ud83d"', "surrogate"),
        (b'"\xed\xa0\x80"', "utf-8"),
        (b'"\xff"', "utf-8"),
        (b"\xff\xfe1\x00", "utf-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "deep"),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "deep"),
        ("[" * 100_000 + "]" * 100_000, "deep"),
        ("[" * 100_000, "deep"),
        ("", "Expecting value"),
        ("  ", "Expecting value"),
        ("{", "Expecting"),
        ("{'a':1}", "Expecting"),
        ("[1,]", "line 1"),
        ("1 2", "Extra data"),
        ('"\t"', "control character"),
        ("01", "Extra data"),
        ("1.", "Extra data"),
        ("+1", "Expecting value"),
    ],
)
def test_what_readers_would_not_read_alike_is_refused(body: str | bytes, reason: str) -> None:
    with pytest.raises(NotCanonical, match=reason):
        form(body)


def test_nesting_up_to_the_limit_is_read_however_wide_the_body_is() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert form(deep) == deep.encode()
    wide = "[" + ",".join(["[{}]"] * 1000) + "]"
    assert form(wide) == wide.encode()


def test_another_charset_is_read_as_the_view_reads_it() -> None:
    assert canonical(body='"é"'.encode("utf-16"), encoding="utf-16") == form('"é"')
    assert canonical(body='"é"'.encode("latin-1"), encoding="latin-1") == form('"é"')


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.text('"\\/{}[]:,\x00')
integers = st.integers() | st.integers(-(2**70), 2**70)
decimals = st.decimals(-(10**9), 10**9, places=6)
values = st.recursive(
    st.none() | st.booleans() | integers | decimals | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def meaning(value: Any) -> Any:
    """Say what a value means, in Python's own words for equality."""
    match value:
        case bool() | None:
            return ("constant", repr(value))
        case int() | Decimal():
            return ("number", Decimal(value))
        case str():
            return ("text", value)
        case list():
            return ("array", tuple(meaning(item) for item in value))
        case dict():
            return ("object", frozenset((name, meaning(item)) for name, item in value.items()))
    raise AssertionError(value)


def written(value: Any, dice: random.Random) -> str:
    """Write a value as JSON in one of its many spellings."""
    space = dice.choice(["", " ", "\n\t"])
    match value:
        case bool() | None:
            return json.dumps(value)
        case int() | Decimal():
            return number(Decimal(value), dice)
        case str():
            return json.dumps(value, ensure_ascii=dice.random() < 0.5)
        case list():
            return f"[{space}" + f"{space},".join(written(v, dice) for v in value) + "]"
        case dict():
            members = [f"{written(k, dice)}{space}:{written(v, dice)}" for k, v in value.items()]
            dice.shuffle(members)
            return "{" + f",{space}".join(members) + f"{space}}}"
    raise AssertionError(value)


def number(value: Decimal, dice: random.Random) -> str:
    shift = dice.randrange(-3, 4)
    if shift:
        # With digits enough to round nothing.
        with localcontext(prec=500):
            return f"{value.scaleb(-shift):f}e{shift:+d}"
    text = f"{value:f}"
    return text + "0" if "." in text else text + dice.choice(["", ".0", ".00", "e0"])


@given(values, st.randoms(use_true_random=False))
def test_every_spelling_of_a_value_has_one_form(value: Any, dice: random.Random) -> None:
    """R7, C1, C5."""
    assert form(written(value, dice)) == form(written(value, dice))


@given(values, values, st.randoms(use_true_random=False))
def test_two_values_share_a_form_only_if_they_are_equal(
    one: Any, other: Any, dice: random.Random
) -> None:
    """R7, C5, C14."""
    same = form(written(one, dice)) == form(written(other, dice))
    assert same == (meaning(one) == meaning(other))


@given(st.binary(max_size=60) | st.text('{}[]",:0123456789.eE+-\\ud8antrfls ', max_size=60))
def test_any_bytes_have_a_form_or_are_refused_and_nothing_else(body: bytes | str) -> None:
    """C7: never a 500 from here."""
    with contextlib.suppress(NotCanonical):
        json.loads(form(body))


@given(values, st.randoms(use_true_random=False))
def test_what_has_a_form_is_what_the_view_would_accept(value: Any, dice: random.Random) -> None:
    text = written(value, dice)
    form(text)
    json.loads(text)
