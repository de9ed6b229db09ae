"""The exception handler (K3; RFC 9457): every error of a view has one shape, and undoes no settlement."""

import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError, connection, transaction
from django.http import Http404
from django.test import RequestFactory, override_settings
from rest_framework import exceptions, serializers
from rest_framework.decorators import api_view, permission_classes
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.views import exception_handler as drf_handler

from idempotency.http import problem
from tests.unit.http.requests import handled


@pytest.mark.parametrize("exc", [OperationalError("connection refused"), InterfaceError("closed")])
def test_r19_a_database_that_is_gone_before_the_claim_is_told_as_such(exc: Exception) -> None:
    """R19: also where it fails earlier, at the look-up of who calls."""
    response = handled(exc)
    assert (response.status_code, response.json["code"]) == (503, "ledger-unavailable")
    assert "Retry-After" in response.headers


class Form(serializers.Serializer[Any]):
    amount = serializers.IntegerField()


def invalid() -> exceptions.ValidationError:
    form = Form(data={"amount": "x"})
    with pytest.raises(exceptions.ValidationError) as caught:
        form.is_valid(raise_exception=True)
    return caught.value


@pytest.mark.parametrize(
    ("exc", "status", "code"),
    [
        (invalid(), 400, "invalid"),
        (exceptions.ParseError(), 400, "parse-error"),
        (exceptions.NotAuthenticated(), 401, "not-authenticated"),
        (exceptions.AuthenticationFailed(), 401, "authentication-failed"),
        (exceptions.PermissionDenied(), 403, "permission-denied"),
        (PermissionDenied(), 403, "permission-denied"),
        (exceptions.NotFound(), 404, "not-found"),
        (Http404(), 404, "not-found"),
        (exceptions.MethodNotAllowed("PUT"), 405, "method-not-allowed"),
        (exceptions.NotAcceptable(), 406, "not-acceptable"),
        (exceptions.UnsupportedMediaType("x/y"), 415, "unsupported-media-type"),
        (exceptions.Throttled(wait=1.2), 429, "throttled"),
        (exceptions.APIException(), 500, "error"),
    ],
)
def test_drfs_own_errors_have_the_same_shape(exc: Exception, status: int, code: str) -> None:
    """K3."""
    response = handled(exc)
    assert (response.status_code, response.json["status"]) == (status, status)
    assert response.json["code"] == code
    assert response.json["type"] == f"/problems/{code}/"
    assert response.headers.get("Retry-After") == ("2" if status == 429 else None)


def test_field_errors_are_kept_as_drf_has_them() -> None:
    assert handled(invalid()).json["errors"] == {"amount": ["A valid integer is required."]}
    assert handled(exceptions.ValidationError("no")).json["errors"] == ["no"]


def test_an_exception_with_a_structured_detail_keeps_its_sentence_and_the_rest() -> None:
    exc = exceptions.AuthenticationFailed({"detail": "Token expired.", "messages": ["x"]})
    body = handled(exc).json
    assert body["detail"] == "Token expired."
    assert body["errors"]["messages"] == ["x"]


def test_a_challenge_is_kept() -> None:
    exc = exceptions.NotAuthenticated()
    exc.auth_header = "Token"  # type: ignore[attr-defined]
    assert handled(exc)["WWW-Authenticate"] == "Token"


def test_an_unknown_exception_is_left_to_django() -> None:
    assert problem.exception_handler(ValueError("x"), {}) is None


class OutOfStock(exceptions.APIException):
    status_code = 409
    default_code = "out_of_stock"
    default_detail = "None left."


EXTRA = {
    "out-of-stock": {
        "status": 409,
        "title": "Nothing left",
        "when": "The last one was sold.",
        "client": "Order something else, with a new key.",
        "retryable": False,
        "safe_new_key": True,
    }
}


def test_a_hosts_own_code_has_no_type_until_it_is_published() -> None:
    """RFC 9457 §4.2.1."""
    body = handled(OutOfStock()).json
    assert body["type"] == "about:blank"
    assert body["title"] == "Conflict"
    assert body["code"] == "out-of-stock"


@override_settings(IDEMPOTENCY={"PROBLEMS": [f"{__name__}.EXTRA"]})
def test_a_hosts_published_code_has_type_title_and_promises() -> None:
    body = handled(OutOfStock()).json
    assert body["type"] == "/problems/out-of-stock/"
    assert body["title"] == "Nothing left"
    assert body["detail"] == "None left."
    assert (body["retryable"], body["safe_new_key"]) == (False, True)


@override_settings(IDEMPOTENCY={"PROBLEM_BASE": "https://docs.example/p/"})
def test_the_pages_may_be_elsewhere() -> None:
    assert handled(problem.KeyMissing()).json["type"] == "https://docs.example/p/key-missing/"


# -- through DRF -------------------------------------------------------------------------------------


class Broken(APIView):
    permission_classes = [AllowAny]
    authentication_classes = ()
    renderer_classes = [BrowsableAPIRenderer]
    exc: Exception = problem.InProgress()

    def get_exception_handler(self) -> Any:
        return problem.exception_handler

    def post(self, request: Any) -> Response:
        raise self.exc


def test_a_problem_is_json_whatever_was_negotiated() -> None:
    """K3: also in a browser, and where nothing acceptable can be written."""
    for accept in ("text/html", "image/png", "*/*"):
        http = RequestFactory().post("/", HTTP_ACCEPT=accept)
        response = Broken.as_view()(http)
        response.render()
        assert response["Content-Type"] == "application/problem+json"
        assert json.loads(response.content)["status"] == response.status_code


def test_a_function_view_has_the_same_problems(settings: Any) -> None:
    """K3."""

    @api_view(["POST"])
    @permission_classes([AllowAny])
    def view(request: Any) -> Response:
        raise problem.InProgress

    response = view(RequestFactory().post("/")).render()
    assert json.loads(response.content)["code"] == "in-progress"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("handler", [problem.exception_handler, drf_handler])
def test_a_verdict_answered_within_a_settlement_does_not_undo_it(
    handler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R15: DRF's handler marks connections under ATOMIC_REQUESTS for rollback."""
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    view = Broken()
    view.setup(RequestFactory().post("/"))
    view.get_exception_handler = lambda: handler  # type: ignore[method-assign]
    with transaction.atomic():
        response = problem.respond(exc=problem.ResultExpired(), view=view)
        assert not transaction.get_rollback()
    assert response.status_code == 410
    with transaction.atomic():
        # Outside a settlement the mark is kept, as DRF means it.
        view.handle_exception(problem.ResultExpired())
        assert transaction.get_rollback()
        transaction.set_rollback(False)


def test_a_verdict_that_the_handler_does_not_know_is_raised() -> None:
    view = Broken()
    view.setup(RequestFactory().post("/"))
    view.request = view.initialize_request(RequestFactory().post("/"))
    with pytest.raises(ZeroDivisionError):
        problem.respond(exc=ZeroDivisionError(), view=view)
