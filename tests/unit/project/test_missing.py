"""Under /api/ also an address that nothing answers is answered with a problem."""

import pytest
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
