"""What is shown of a stored body: its shape to everybody, its values to some, secrets to nobody."""

import json

import pytest

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
