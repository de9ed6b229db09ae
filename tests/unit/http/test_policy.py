"""The policy for keys is published, out of the live settings, where the refusals lead (the draft's "MUST publish")."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client, override_settings

from idempotency.http import policy, problem
from tests.unit.http.requests import fingerprint_of, request_of

ADDRESS = "/problems/policy/"


def page(accept: str) -> Any:
    return Client().get(ADDRESS, HTTP_ACCEPT=accept, secure=True)


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("idempotency_policy", *arguments, stdout=out)
    return out.getvalue()


def test_it_is_a_page_markdown_or_json() -> None:
    assert page("text/html")["Content-Type"].startswith("text/html")
    assert "<code>Idempotency-Key</code>" in page("*/*").content.decode()
    assert page("text/markdown").content.decode() == command()
    assert page("application/json").json() == json.loads(command("--format", "json"))


def test_it_follows_the_settings() -> None:
    changed = {
        "RESULT_TTL": 7_200,
        "KEY_TTL": 86_400,
        "MISMATCH_STATUS": 409,
        "FINGERPRINT_HEADERS": ["X-Currency"],
        "STORED_HEADERS": ["Location"],
        "MAX_RESPONSE_BYTES": 4_711,
        "WAIT": 2,
        "SCOPE": "tests.unit.http.test_policy.everybody",
    }
    with override_settings(IDEMPOTENCY=changed):
        text, data = policy.markdown(), policy.policy()
    for said in (
        "replayed for 2 hours",
        "known for 1 day;",
        "409 `key-reused`",
        "`X-Currency`",
        "headers `Location`.",
        "4711 bytes",
        "up to 2 seconds",
        "tests.unit.http.test_policy.everybody",
    ):
        assert said in text
    assert data["time_to_live"]["answer"] == 7_200
    assert data["stored"]["headers"] == ["Location"]


FORM = "application/x-www-form-urlencoded"


def multipart(boundary: str, name: str = "a.txt") -> tuple[str, str, str]:
    lines = (
        f"--{boundary}",
        f'Content-Disposition: form-data; name="file"; filename="{name}"',
        "Content-Type: text/plain",
        "",
        "content",
        f"--{boundary}--",
        "",
    )
    return "\r\n".join(lines), f"multipart/form-data; boundary={boundary}", "/"


def json_(body: str, path: str = "/") -> tuple[str, str, str]:
    return body, "application/json", path


EQUAL = [
    (json_('{"a": 1, "b": 2}'), json_('{"b":2,"a":1}')),
    (json_("[1, 1.0, 1e0, 10]"), json_("[1.0, 1e0, 1, 1e1]")),
    (json_('"\\u00e9"'), json_('"\u00e9"')),
    (json_("{}", "/?a=1&b=2"), json_("{}", "/?b=2&a=1")),
    (multipart("x1"), multipart("x2")),
]
DIFFERENT = [
    (json_("9007199254740992"), json_("9007199254740993")),
    (json_("1"), json_('"1"')),
    (json_("[1, 2]"), json_("[2, 1]")),
    (json_("{}"), json_('{"a": null}')),
    (json_('" hello "'), json_('"hello"')),
    (json_('"\u00e9"'), json_('"e\u0301"')),
    (json_("{}", "/?a=1&a=2"), json_("{}", "/?a=2&a=1")),
    (("a=1&b=2", FORM, "/"), ("b=2&a=1", FORM, "/")),
    (multipart("x1"), multipart("x1", name="b.txt")),
    (("a", "text/plain", "/"), ("a ", "text/plain", "/")),
]


@pytest.mark.parametrize("pair", EQUAL, ids=str)
def test_what_it_calls_equal_is_equal(pair: Any) -> None:
    first, second = (fingerprint_of(request_of(body, kind, path=path)) for body, kind, path in pair)
    assert first.current == second.current


@pytest.mark.parametrize("pair", DIFFERENT, ids=str)
def test_what_it_calls_another_request_is_another(pair: Any) -> None:
    first, second = (fingerprint_of(request_of(body, kind, path=path)) for body, kind, path in pair)
    assert first.current != second.current


@pytest.mark.parametrize("body", ['{"a": 1, "a": 1}', "NaN", "1e400", "Infinity", '"\\ud800"'])
def test_what_it_says_is_refused_is(body: str) -> None:
    with pytest.raises(problem.BodyInvalid):
        fingerprint_of(request_of(body))


def everybody(_: Any) -> str:
    return "everybody"


@pytest.mark.parametrize("refusal", [problem.KeyMissing(), problem.KeyInvalid("It is blank.")])
def test_a_refused_key_leads_to_it(refusal: problem.Problem) -> None:
    response = problem.exception_handler(refusal, {})
    assert response is not None
    assert response.data["policy"] == ADDRESS
    assert response["Link"] == f'<{ADDRESS}>; rel="describedby"'
    of_the_code = Client().get(f"/problems/{refusal.code}/", secure=True).content.decode()
    assert f'href="{ADDRESS}"' in of_the_code


def test_other_problems_do_not_lead_there() -> None:
    response = problem.exception_handler(problem.InProgress(), {})
    assert response is not None
    assert "policy" not in response.data
    assert "Link" not in response


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 seconds"), (1, "1 second"), (90, "90 seconds"), (3_600, "1 hour"), (259_200, "3 days")],
)
def test_a_duration_is_in_the_largest_whole_unit(seconds: float, words: str) -> None:
    assert policy.duration(seconds) == words
