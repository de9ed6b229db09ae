"""What is shown of a stored body: its shape to everybody, its values to some, secrets to nobody."""

import json

import pytest
from django.conf import LazySettings

from idempotency.admin.redaction import HIDDEN, evidence, shown


def test_a_shape_without_values() -> None:
    body = json.dumps({"amount": 5, "customer": {"name": "Olena", "tags": ["a", 1, None, True]}})
    seen = json.loads(shown(body.encode(), revealed=False))
    assert seen == {"amount": 5, "customer": {"name": HIDDEN, "tags": [HIDDEN, HIDDEN, None, True]}}


def test_values_where_they_may_be_seen() -> None:
    seen = json.loads(shown({"name": "Olena", "n": 1.5}, revealed=True))
    assert seen == {"name": "Olena", "n": 1.5}


@pytest.mark.parametrize(
    "name", ["client_secret", "api_key", "Password", "access_token", "cvc", "card_number"]
)
def test_secrets_are_never_shown(name: str) -> None:
    assert "x1" not in shown({name: "x1", "deep": [{name: "x1"}]}, revealed=True)


def test_card_numbers_are_never_shown_wherever_they_stand() -> None:
    card = "4242 4242 4242 4242"
    for raw in ({"note": f"card {card}"}, {card: 1}, f"text {card}".encode()):
        assert card not in shown(raw, revealed=True)


@pytest.mark.parametrize(
    ("raw", "revealed", "text"),
    [
        (b"\xff\x00", True, "2 bytes that are not text"),
        (b"\xff\x00", False, f"{HIDDEN} (2 bytes)"),
        (b"plain", True, "plain"),
        (b"plain", False, f"{HIDDEN} (5 bytes)"),
        (b"", False, f"{HIDDEN} (0 bytes)"),
    ],
)
def test_what_is_not_json(raw: bytes, revealed: bool, text: str) -> None:
    assert shown(raw, revealed=revealed) == text


def test_what_is_long_or_deep_is_cut() -> None:
    deep: object = "bottom"
    for _ in range(40):
        deep = [deep]
    assert "bottom" not in shown(deep, revealed=True)
    assert "more characters" in shown({"text": "x" * 30_000}, revealed=True)
    assert shown(b"[" * 100_000, revealed=False).startswith(HIDDEN)


def test_evidence_is_read_at_once_and_another_side_s_answer_stays_hidden() -> None:
    facts, rest = evidence(
        {
            "decision": "applied",
            "happened": True,
            "evidence": {"reference": "pi_1"},
            "record": {"name": "Olena"},
        },
        revealed=False,
    )
    assert facts == {"decision": "applied", "happened": "yes", "reference": "pi_1"}
    assert "Olena" not in rest
    assert "record" in rest


CUSTOMER = {
    "customer": {"name": "Olena", "IBAN": "UA21", "phones": [{"number": "044"}, {"number": "067"}]},
    "lines": [{"note": "a", "bank": {"iban": "UA22"}}],
    "phone": "099",
}


@pytest.mark.parametrize(
    ("rules", "hidden", "seen"),
    [
        # By default, what names a person in an office's files.
        (None, ("UA21", "UA22"), ("Olena", "044", "099")),
        (["phone"], ("099",), ("044", "UA21")),
        (["customer.phones.*.number"], ("044", "067"), ("099", "UA21")),
        (["customer.phones"], ("044", "067"), ("099", "Olena")),
        (["*.name"], ("Olena",), ("099", "a")),
        (["number"], ("044", "067"), ("099",)),
        (["lines.*.bank"], ("UA22",), ("UA21", "Olena")),
        ([], (), ("UA21", "UA22", "Olena", "099")),
    ],
)
def test_a_host_says_what_nobody_is_shown(
    rules: list[str] | None, hidden: tuple[str, ...], seen: tuple[str, ...], settings: LazySettings
) -> None:
    settings.IDEMPOTENCY = {} if rules is None else {"REDACT": rules}
    text = shown(json.dumps(CUSTOMER).encode(), revealed=True)
    assert not [value for value in hidden if value in text]
    assert [value for value in seen if value in text] == list(seen)


def test_a_secret_is_hidden_with_all_that_is_in_it() -> None:
    text = shown({"token": {"of": ["tok_1"]}, "kept": "x"}, revealed=True)
    assert "tok_1" not in text
    assert "kept" in text


def test_a_form_is_read_as_what_it_says(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {"REDACT": ["metadata.phone"]}
    form = b"amount=500&metadata[phone]=044&metadata[order]=o-1&card[cvc]=123&expand=a&expand=b"
    everybody = json.loads(shown(form, revealed=False))
    assert everybody["amount"] == "500"
    assert everybody["metadata[order]"] == HIDDEN
    some = json.loads(shown(form, revealed=True))
    assert some == {
        "amount": "500",
        "metadata[phone]": HIDDEN,
        "metadata[order]": "o-1",
        "card[cvc]": HIDDEN,
        "expand": ["a", "b"],
    }


def test_evidence_keeps_to_it_too(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {"REDACT": ["about", "phone"]}
    facts, rest = evidence({"about": "Olena", "said": "paid", "phone": "044"}, revealed=True)
    assert facts == {"about": HIDDEN, "said": "paid"}
    assert "044" not in rest
