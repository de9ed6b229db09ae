"""A page for every problem code, where its `type` leads (RFC 9457 §4)."""

import json
import re
from typing import Any

import pytest
from django.http import Http404, HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import reverse

from idempotency.http import problem
from idempotency.views import problem_page

CODES = sorted(problem.BUILT_IN)


@pytest.fixture(autouse=True)
def _routes(settings: Any) -> None:
    settings.ROOT_URLCONF = "idempotency.urls"
    settings.IDEMPOTENCY = {}


def get(code: str, accept: str = "") -> HttpResponse:
    extra: dict[str, Any] = {"HTTP_ACCEPT": accept} if accept else {}
    return problem_page(RequestFactory().get("/", **extra), code=code)


@pytest.mark.parametrize("code", CODES)
def test_the_type_of_every_code_leads_to_its_page(code: str) -> None:
    entry = problem.catalogue()[code]
    address = f"/problems/{code}/"
    assert reverse("idempotency-problem", args=[code]) == address
    page = Client().get(address, HTTP_ACCEPT="text/html", secure=True)
    assert page.status_code == 200
    text = page.content.decode()
    assert f"<h1>{entry.title}</h1>".replace("'", "&#x27;") in text
    assert code in text
    assert str(entry.status) in text


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "text/html"),
        ("*/*", "text/html"),
        ("image/png", "text/html"),
        ("text/html,application/json;q=0.9", "text/html"),
        ("application/json", "application/json"),
        ("application/json, text/html;q=0.5", "application/json"),
    ],
)
def test_a_page_is_html_unless_json_is_preferred(accept: str, kind: str) -> None:
    response = get("in-progress", accept)
    assert response["Content-Type"].startswith(kind)
    assert "Accept" in response["Vary"]


def test_as_json_a_page_is_the_catalogues_entry() -> None:
    body = json.loads(get("in-progress", "application/json").content)
    assert body["code"] == "in-progress"
    assert (body["status"], body["retryable"], body["safe_new_key"]) == (409, True, False)


@pytest.mark.parametrize("code", ["nonsense", "IN-PROGRESS", "in_progress"])
def test_an_unknown_code_has_no_page(code: str) -> None:
    with pytest.raises(Http404):
        get(code)


def test_a_page_needs_nothing_from_elsewhere_and_escapes_what_a_host_wrote() -> None:
    """It is read when things are broken."""
    with override_settings(IDEMPOTENCY={"PROBLEMS": [f"{__name__}.EXTRA"]}):
        page = get("odd").content.decode()
    assert "<script>" not in page
    assert not re.search(r"<link|<script|<img|@import|url\(|src=", page)
    assert "prefers-color-scheme: dark" in page


EXTRA = {"odd": {"status": 400, "title": "<script>", "when": "Never.", "client": "Nothing."}}


def test_a_page_is_only_read() -> None:
    assert problem_page(RequestFactory().post("/"), code="in-progress").status_code == 405
