"""Renderers, versions and exception handlers of the host's own."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group

Post = Callable[..., Any]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/csv"])
def test_r16_what_was_rendered_first_is_replayed_whatever_is_accepted_later(
    rest: Post, accept: str
) -> None:
    first = rest("/rendered/", headers={"Accept": accept})
    again = rest("/rendered/", headers={"Accept": "application/json"})
    assert first.status_code == 201
    assert first["Content-Type"].startswith(accept)
    assert (again.content, again["Content-Type"]) == (first.content, first["Content-Type"])
    assert Group.objects.count() == 1


@pytest.mark.parametrize(("kind", "status"), [("", 201), ("verdict", 402)])
def test_r16_an_envelope_of_the_hosts_is_kept_with_what_is_in_it(
    rest: Post, kind: str, status: int
) -> None:
    first, again = (rest("/enveloped/", {"kind": kind} if kind else {}) for _ in range(2))
    assert (first.status_code, first.json()["ok"]) == (status, status < 400)
    assert (again.status_code, again.content) == (status, first.content)
    # A refusal of the ledger's own comes in it, too.
    assert rest("/enveloped/", {"first_name": "other"}).json()["ok"] is False


def test_r7_camel_case_is_the_hosts_and_the_body_is_compared_as_sent(rest: Post) -> None:
    body = json.dumps({"firstName": "Ada"})
    more = {"format": None, "content_type": "application/json"}
    first, again = (rest("/camel/", body, **more) for _ in range(2))
    assert first.json()["firstName"] == "Ada"
    assert again.content == first.content
    other = rest("/camel/", json.dumps({"first_name": "Ada"}), **more)
    assert other.status_code == 422
    # The host's exception handler makes problems, and its renderer is not asked about them.
    assert "operation_ref" in other.json()


def test_r7_the_version_in_the_accept_header_is_no_part_of_the_request(rest: Post) -> None:
    """Another representation of the same operation; a host that disagrees opts the header in."""
    first, again = (
        rest("/versioned/", headers={"Accept": f"application/json; version={version}"})
        for version in ("1", "2")
    )
    assert first.json()["version"] == "1"
    assert again.content == first.content


def test_r7_a_host_can_make_the_version_count(rest: Post, settings: Any) -> None:
    settings.IDEMPOTENCY = {"FINGERPRINT_HEADERS": ["Accept"]}
    one, two = (
        rest("/versioned/", headers={"Accept": f"application/json; version={version}"})
        for version in ("1", "2")
    )
    assert (one.status_code, two.status_code) == (201, 422)


@pytest.mark.parametrize(
    ("path", "code_in"),
    [
        ("/errors/drf/", lambda body: body["detail"]),
        ("/errors/standardized/", lambda body: body["errors"][0]["code"]),
        ("/errors/own/", lambda body: body["oops"]),
    ],
)
def test_r14_a_verdict_is_kept_in_the_form_of_the_hosts_handler(
    rest: Post, path: str, code_in: Callable[[Any], str]
) -> None:
    first, again = (rest(path, {"kind": "verdict"}) for _ in range(2))
    assert first.status_code == 402
    assert code_in(first.json()) in {"too_poor", "Too little money."}
    assert (again.status_code, again.content) == (402, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert not Group.objects.exists()


@pytest.mark.parametrize(
    ("path", "code_in"),
    [
        ("/errors/standardized/", lambda body: body["errors"][0]["code"]),
        ("/errors/own/", lambda body: body["oops"]),
    ],
)
def test_r4_r9_the_ledgers_own_refusals_keep_their_codes_under_any_handler(
    rest: Post, path: str, code_in: Callable[[Any], str]
) -> None:
    missing = rest(path, key=None)
    rest(path)
    reused = rest(path, {"first_name": "other"})
    assert (missing.status_code, code_in(missing.json())) == (400, "key-missing")
    assert (reused.status_code, code_in(reused.json())) == (422, "key-reused")
