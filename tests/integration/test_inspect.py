"""`idempotency_inspect`: the whole story of a key in a terminal."""

import io
import json
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.checks.walk import bare_handlers
from idempotency.decorators import idempotent
from idempotency.ledger.writing import key_hash
from tests.support.factories import make_key, make_rarities, make_step, make_variety

pytestmark = pytest.mark.django_db


def inspect(*words: str) -> str:
    out = io.StringIO()
    call_command("idempotency_inspect", *words, stdout=out, no_color=True)
    return out.getvalue()


def as_json(*words: str) -> Any:
    return json.loads(inspect(*words, "--json"))


@pytest.mark.parametrize("name", ["key", "pk", "reference", "request_id"])
def test_a_key_is_found_by_whatever_somebody_was_given(name: str) -> None:
    key = make_key()
    assert str(key.pk) in inspect(str(getattr(key, name)))


@pytest.mark.parametrize("name", ["nobody", "", "byte \udcff", "nul \x00"])
def test_what_names_no_key_is_told_as_such(name: str) -> None:
    with pytest.raises(CommandError, match="No key"):
        inspect(name)


def test_the_story_has_the_calls_and_what_to_do_and_no_payload() -> None:
    key = make_variety()["unknown"]
    said = inspect(str(key.pk))
    assert "Outside call “charge” at stripe begun" in said
    assert "To do:" in said
    assert key_hash(key.key) in said
    assert "Olena" not in said


def test_json_has_the_same_as_data(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {
        **settings.IDEMPOTENCY,
        "TRACE_URL": "https://traces.example/{trace_id}",
    }
    key = make_key(traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    make_step(key)
    (story,) = as_json(str(key.pk))
    assert story["operation_ref"] == str(key.pk)
    assert story["situation"] == "lapsed"
    assert story["timeline"][0]["what"] == "Key claimed"
    assert story["trace"] == f"https://traces.example/{'ab' * 16}"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(CommandError, match="No key has that name"):
        inspect("nothing")


def test_stuck_are_those_that_somebody_may_have_to_see() -> None:
    keys = make_variety() | make_rarities()
    found = {one["operation_ref"]: one["situation"] for one in as_json("--stuck")}
    stuck = (
        *("unknown", "person", "unfinished", "lapsed", "late", "overdue"),
        *("stuck-halfway", "done-twice", "done-differently"),
    )
    assert set(found) == {str(keys[name].pk) for name in stuck}
    assert "9 key(s)" in inspect("--stuck")


def test_what_a_caller_wrote_does_nothing_to_the_terminal() -> None:
    make_key(reference="881", summary="order \x1b[2J881", request_id="\x1b]52;c;aGk=\x07")
    assert not set("\x1b\x07") & set(inspect("881"))


def test_routes_that_honour_no_key_are_listed() -> None:
    found = {(one["method"], one["route"]) for one in as_json("--routes")}
    # The monitor's own `cancel` needs none: twice is a success.
    assert ("POST", "api/webhooks/stripe/") in found
    assert ("POST", "api/operations/<uuid:id>/cancel/") not in found
    assert ("POST", "api/payments/") not in {
        (method, route.replace("^", "")) for method, route in found
    }
    assert f"{len(found)} unsafe route(s)" in inspect("--routes")


class Theirs(APIView):
    def post(self, request: Request) -> Response:
        return Response()


class Ours(Theirs):
    @idempotent(operation="ours")
    def post(self, request: Request) -> Response:
        return super().post(request)


def test_a_view_that_stands_before_another_s_hides_it() -> None:
    theirs = [path("orders/", Theirs.as_view()), path("letters/", Theirs.as_view())]
    with override_settings(ROOT_URLCONF=(path("orders/", Ours.as_view()), *theirs)):
        assert [one.route for one in bare_handlers()] == ["letters/"]


def test_nothing_asked_for_is_an_error() -> None:
    with pytest.raises(CommandError):
        inspect()
