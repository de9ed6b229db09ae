"""Under /api/ also an address that nothing answers is answered with a problem."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.test import Client
from django.urls import resolve


@pytest.mark.parametrize("path", ["/api/nothing/", "/api/payments/0.5/", "/api/"])
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_nothing_is_a_problem(path: str, method: str) -> None:
    answer = getattr(Client(), method)(path, secure=True)
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["code"] == "not-found"


def test_what_is_there_stays_where_it_is() -> None:
    for path in ("/api/schema/", "/api/docs/", "/api/payments/", "/api/webhooks/stripe/"):
        assert "Missing" not in str(resolve(path).func)


def test_an_address_without_its_slash_is_led_to_the_right_one(db: None) -> None:
    answer = Client().get("/api/payments", secure=True)
    assert (answer.status_code, answer["Location"]) == (301, "/api/payments/")


def test_a_write_without_its_slash_is_a_problem_and_never_a_redirect() -> None:
    answer = Client().post("/api/payments", {}, content_type="application/json", secure=True)
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


class Breaking:
    """A middleware that fails on the way in, or on the way back, where the work may be done."""

    error: Exception
    on_the_way_in = True

    def __init__(self, get_response: Any) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        if not self.on_the_way_in:
            self._get_response(request)
        raise self.error


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "on_the_way_in", "status", "code"),
    [
        (OperationalError("the connection is lost"), True, 503, "ledger-unavailable"),
        (InterfaceError("the connection is closed"), True, 503, "ledger-unavailable"),
        (OperationalError("the connection is lost"), False, 500, "error"),
        (KeyError("a mistake"), True, 500, "error"),
    ],
)
def test_an_error_outside_of_every_view_is_a_problem_too(
    error: Exception,
    on_the_way_in: bool,
    status: int,
    code: str,
    settings: LazySettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Breaking, "error", error, raising=False)
    monkeypatch.setattr(Breaking, "on_the_way_in", on_the_way_in)
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.Breaking"]
    client = Client(raise_request_exception=False)
    for method in ("get", "post", "put"):
        answer = getattr(client, method)("/api/payments/")
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert answer["Content-Type"] == "application/problem+json"
        assert "a mistake" not in answer.content.decode()
    assert client.get("/healthz/")["Content-Type"].startswith("text/html")


def test_the_front_door_leads_to_the_description() -> None:
    answer = Client().get("/", secure=True)
    assert (answer.status_code, answer["Location"]) == (302, "/api/docs/")
