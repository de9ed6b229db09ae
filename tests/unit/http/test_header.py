"""The Idempotency-Key header (R3, R4): one key, or a refusal; never "no key" where there is a header."""

from typing import Any

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.request import Request

from idempotency.http.header import MAX_LENGTH, mask, mint, parse, read_key
from idempotency.http.problem import KeyInvalid, KeyMissing

VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))
BARE = "".join(character for character in VISIBLE if character not in '",\\')


def read(value: str | None, *, required: bool = True) -> str | None:
    headers: dict[str, Any] = {} if value is None else {"HTTP_IDEMPOTENCY_KEY": value}
    return read_key(request=RequestFactory().post("/", **headers), required=required)


def quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("k1", "k1"),
        ('"k1"', "k1"),
        ("  k1\t", "k1"),
        (' "k1" ', "k1"),
        ('"k1";v=2', "k1"),
        ('"k1"; v=2;  w', "k1"),
        ('"k1";a=1.5;b=-7;c="x\\"y";d=tok/en:1;e=:aGk=:;f=?0;g=@1659578233;h=%"%c3%bc"', "k1"),
        ('"k1";*=1', "k1"),
        ('"a b"', "a b"),
        ('"a,b"', "a,b"),
        ('"a\\"b\\\\c"', 'a"b\\c'),
        # Not a string, so not a structured field: the bytes are the key.
        ("k1;v=2", "k1;v=2"),
        ("../../etc", "../../etc"),
        ("x" * MAX_LENGTH, "x" * MAX_LENGTH),
        (quoted('"' * MAX_LENGTH), '"' * MAX_LENGTH),
    ],
)
def test_one_key_is_read_from_each_form(value: str, key: str) -> None:
    """R3, B7: an SDK that begins to quote keys in mid-retry still means the same key."""
    assert read(value) == key


@pytest.mark.parametrize(
    "value",
    [
        "",
        "   ",
        "\t",
        '""',
        '"   "',
        "k1,k2",
        "k1, k1",
        '"k1", "k1"',
        '"k1","k2"',
        "k 1",
        'k"1',
        "k\\1",
        '"k1',
        '"',
        '"k1" x',
        '"k1"x',
        '"k1" ;v=1',
        '"k1";',
        '"k1";V=1',
        '"k1";v=',
        '"k1";v= 1',
        '"k1";v=1 ;w',
        '"k1";v=1234567890123456',
        '"k1";v=1.2345',
        '"k1";v=?2',
        '"k1";v=:a:',
        '"k1";v=:a-b:',
        '"k1";v=@1.5',
        '"k1";v=%"%C3%BC"',
        '"k1";v=%"%c3"',
        '"k1";v=(1 2)',
        '"k1";v=\u0661',
        '"k\\1"',
        '"k\x00"',
        '"k\x7f"',
        '"k\t1"',
        "k\x00",
        "k\x7f",
        "k\n1",
        # é in UTF-8, as a WSGI server hands it on.
        "k\u00c3\u00a9",
        "k\u00e9",
        '"\u00e9"',
        "k\u0661",
        "x" * (MAX_LENGTH + 1),
        "x" * 8192,
        quoted("x" * (MAX_LENGTH + 1)),
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_anything_else_is_refused_even_where_a_key_is_optional(value: str, required: bool) -> None:
    """R3, B8: present but blank is never "no key", which would take the unprotected path."""
    with pytest.raises(KeyInvalid) as caught:
        read(value, required=required)
    assert caught.value.status_code == 400
    assert caught.value.code == "key-invalid"


def test_an_absent_key_is_missing_only_where_it_is_required() -> None:
    """R4."""
    assert read(None, required=False) is None
    with pytest.raises(KeyMissing) as caught:
        read(None)
    assert caught.value.status_code == 400
    assert caught.value.code == "key-missing"


def test_the_header_is_read_from_a_drf_request_too() -> None:
    request = RequestFactory().post("/", HTTP_IDEMPOTENCY_KEY="k1")
    assert read_key(request=Request(request), required=True) == "k1"


@given(st.text(BARE, min_size=1, max_size=MAX_LENGTH))
def test_a_bare_key_and_its_quoted_form_are_one_key(key: str) -> None:
    """R3, B7."""
    assert parse(key) == parse(quoted(key)) == key


@given(st.text(VISIBLE + " "))
def test_every_printable_text_survives_quoting(text: str) -> None:
    """RFC 9651 §3.3.3."""
    assert parse(quoted(text)) == text


@given(st.text(max_size=40) | st.text('";=,\\ a1%:?@*.', max_size=40))
def test_whatever_comes_is_a_printable_key_or_a_refusal(value: str) -> None:
    """R3, B8: nothing gets past into the database, and nothing is a server error."""
    try:
        key = read(value)
    except KeyInvalid:
        return
    assert key is not None
    assert 1 <= len(key) <= MAX_LENGTH
    assert key.isascii()
    assert key.isprintable()


@given(st.text(min_size=4, max_size=40))
def test_a_refusal_never_repeats_the_value(value: str) -> None:
    refusals = []
    try:
        parse(value)
    except KeyInvalid as refusal:
        refusals.append(str(refusal.detail))
    assert all(value not in refusal for refusal in refusals)


def test_a_minted_key_is_a_valid_key_and_never_the_same() -> None:
    """R4."""
    keys = {mint() for _ in range(100)}
    assert len(keys) == 100
    assert all(read(key) == key for key in keys)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("4242424242424242", "************4242"),
        ("4242-4242-4242-4242", "****-****-****-4242"),
        ("4242 4242 4242 4242", "**** **** **** 4242"),
        ("3782-822463-10005", "****-******-*0005"),
        ("order-378282246310005-1", "order-***********0005-1"),
        ("order_378282246310005/x", "order_***********0005/x"),
        ("4242424242424241", "4242424242424241"),
        ("1" * 20, "1" * 20),
        ("12345678-1234-1234-1234-123456789012", "12345678-1234-1234-1234-123456789012"),
        ("k1", "k1"),
    ],
)
def test_what_looks_like_a_card_number_is_masked_where_keys_are_shown(key: str, shown: str) -> None:
    """B8."""
    assert mask(key) == shown


@pytest.mark.parametrize(
    "character", ["\x1b", "\x00", "\x9b", "\u202e", "\u2066", "\ud800"], ids=ascii
)
def test_what_would_act_on_a_screen_is_not_put_there(character: str) -> None:
    assert mask(f"order {character}881") == "order \ufffd881"


def test_lines_and_letters_of_any_script_stay() -> None:
    text = "рахунок 5\tשקל\r\n🙂"
    assert mask(text) == text
