"""What each answer means to a client, for every code that the server publishes."""

import json

import pytest

from idempotency import answers
from idempotency.client.answer import Answer
from idempotency.client.course import REFUSALS, Meaning, meaning
from idempotency.http.problem import BUILT_IN, Entry

WAITED_FOR = {"in-progress", "outcome-unknown"}


def told(entry: Entry, status: int) -> Answer:
    body = {"code": entry.code, "retryable": entry.retryable, "safe_new_key": entry.safe_new_key}
    return Answer(status, {}, json.dumps(body).encode())


@pytest.mark.parametrize("code", sorted(BUILT_IN))
def test_every_published_code_has_its_meaning(code: str) -> None:
    entry = BUILT_IN[code]
    for status in (entry.status, *entry.also):
        found = meaning(told(entry, status))
        if code in WAITED_FOR:
            assert found is Meaning.WAIT
        elif entry.retryable or code == "throttled":
            assert found is Meaning.AGAIN
        elif code == "key-reused":
            assert found is Meaning.REUSED
        elif status >= 500:
            assert found is Meaning.UNCLEAR
        elif status in answers.REFUSALS | {411}:
            assert found is Meaning.REFUSED, "the server leaves the key free"
        else:
            assert found is Meaning.FINAL


def test_the_refusals_are_the_servers_own() -> None:
    """R14; and 411, which the server raises before it claims."""
    assert answers.REFUSALS | {411} == REFUSALS


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        # K5: two 409s without a code are told apart by Retry-After.
        (Answer(409, {"retry-after": "1"}), Meaning.WAIT),
        (Answer(409), Meaning.FINAL),
        (Answer(409, {"retry-after": "1"}, b'{"code": "no-stock"}'), Meaning.FINAL),
        # A page of something in between says nothing about the operation.
        (Answer(503, {}, b"<html>"), Meaning.UNCLEAR),
        (Answer(504, {}, b"[]"), Meaning.UNCLEAR),
        (Answer(429, {}, b'{"code": 5}'), Meaning.UNCLEAR),
        (Answer(302), Meaning.REFUSED),
        (Answer(201), Meaning.FINAL),
        (Answer(202), Meaning.FINAL),
    ],
)
def test_without_a_code_the_status_decides(answer: Answer, found: Meaning) -> None:
    assert meaning(answer) is found
