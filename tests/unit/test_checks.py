"""The numbered checks: each wrong setting and each view that cannot keep its promise, by id."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.checks import CheckMessage
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import URLPattern, URLResolver, include, path
from django.utils.decorators import method_decorator
from rest_framework.decorators import action, api_view, permission_classes
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from idempotency.checks import check_middleware, check_routes, check_settings
from idempotency.decorators import idempotent

POSTGRESQL = {"ENGINE": "django.db.backends.postgresql"}
LONG = "s" * 16


def ids(messages: list[CheckMessage]) -> list[str]:
    assert all(message.hint for message in messages), "every check says what to do"
    return [str(message.id).removeprefix("idempotency.") for message in messages]


def settings_ids(**values: Any) -> list[str]:
    with override_settings(IDEMPOTENCY=values):
        return ids(check_settings())


@pytest.fixture(autouse=True)
def _pages() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="idempotency.urls", IDEMPOTENCY={}):
        yield


def test_the_defaults_are_in_order() -> None:
    assert settings_ids() == []
    assert settings_ids(FINGERPRINT_SECRETS={"1": LONG}, FINGERPRINT_HEADERS=["X-Currency"]) == []


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"LEASE": "45"}, ["E002"]),
        ({"LEASE": -1, "MISMATCH_STATUS": 200}, ["E002", "E002"]),
        ({"SCOPE": "no.such.scope"}, ["E002"]),
        ({"FINGERPRINT_SECRETS": {}}, ["E002"]),
        ({"DATABASE": None}, ["E002"]),
        ({"LEESE": 45}, ["E003"]),
        ({"lease": 45}, ["E003"]),
        ({"LEASE": 12, "OPERATION_TIME_LIMIT": 1}, ["E004"]),
        ({"RESULT_TTL": 2_592_001}, ["E005"]),
        ({"RETRY_BASE": 6}, ["E006"]),
        ({"OPERATION_TIME_LIMIT": 45}, ["E007"]),
        ({"WAIT": 12}, ["E008"]),
        ({"STORED_HEADERS": ["Set-Cookie", "X-RateLimit-Limit", "ETag"]}, ["E009", "E009"]),
        ({"DATABASE": "elsewhere"}, ["E010"]),
        ({"PROBLEMS": ["no.such.mapping"]}, ["E013"]),
        ({"PROBLEMS": ["tests.unit.test_checks.LONG"]}, ["E013"]),
        ({"PROBLEMS": ["tests.unit.test_checks.HALF_A_PROBLEM"]}, ["E013"]),
        ({"FINGERPRINT_SECRETS": {"1": "short"}}, ["W001"]),
        ({"FINGERPRINT_HEADERS": ["Authorization"]}, ["W002"]),
        ({"RESULT_TTL": 3600, "KEY_TTL": 3600}, ["W003"]),
        ({"PROBLEM_BASE": "/nowhere/"}, ["W004"]),
        ({"PROBLEM_BASE": "/problems"}, ["W004"]),
        ({"PROBLEM_BASE": "https://docs.example/"}, []),
        ({"RESULT_TTL": 2_592_000}, []),
    ],
)
def test_a_wrong_setting_is_reported_once(values: dict[str, Any], found: list[str]) -> None:
    assert settings_ids(**values) == found


HALF_A_PROBLEM = {"out-of-stock": {"status": 409}}


def test_a_misspelt_setting_is_answered_with_the_right_one() -> None:
    with override_settings(IDEMPOTENCY={"LEESE": 45}):
        (message,) = check_settings()
    assert message.hint == "Did you mean LEASE?"


@override_settings(IDEMPOTENCY=["LEASE"])
def test_what_is_not_a_dict_is_reported() -> None:
    assert ids(check_settings()) == ["E001"]


@pytest.mark.parametrize(
    ("database", "found"),
    [
        ({"ENGINE": "django.db.backends.sqlite3"}, ["E011"]),
        ({"ENGINE": "django.db.backends.mysql"}, ["E011"]),
        ({"ENGINE": "django.contrib.gis.db.backends.postgis"}, []),
        ({"ENGINE": "django_prometheus.db.backends.postgresql"}, []),
        (POSTGRESQL | {"AUTOCOMMIT": False}, ["E012"]),
    ],
)
def test_the_ledgers_database_is_a_postgresql_that_it_may_commit(
    database: dict[str, Any], found: list[str], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setitem(settings.DATABASES, "ledger", database)
    assert settings_ids(DATABASE="ledger") == found


# -- decorated views ---------------------------------------------------------------------------------


def routes_ids(*patterns: URLPattern | URLResolver) -> list[str]:
    with override_settings(ROOT_URLCONF=patterns):
        return ids(check_routes())


class Base(APIView):
    permission_classes: Any = [IsAuthenticated]


class Good(Base):
    @idempotent(operation="good")
    def post(self, request: Request) -> Response:
        return Response()

    def put(self, request: Request) -> Response:
        return Response()


class Orders(GenericViewSet[Any]):
    permission_classes: Any = [IsAuthenticated]

    @idempotent(operation="orders.create")
    def create(self, request: Request) -> Response:
        return Response()

    @action(detail=True, methods=["post"])
    @idempotent(operation="orders.pay")
    def pay(self, request: Request, pk: str) -> Response:
        return Response()

    @action(detail=True, methods=["post"], permission_classes=[AllowAny])
    @idempotent(operation="orders.greet")
    def greet(self, request: Request, pk: str) -> Response:
        return Response()


@api_view(["POST"])
@permission_classes([IsAuthenticated])
@idempotent(operation="function")
def function(request: Request) -> Response:
    return Response()


def routed(viewset: Any) -> URLResolver:
    router = DefaultRouter()
    router.register("orders", viewset, basename="order")
    return path("api/", include(router.urls))


def test_good_views_of_every_kind_are_in_order() -> None:
    assert routes_ids(path("a/", Good.as_view()), path("b/", function)) == []
    assert routes_ids(path("v1/", include([path("a/", Good.as_view())]))) == []


def test_each_handler_is_found_and_judged_once_however_many_routes_it_has() -> None:
    """A router adds a route with a format suffix; an action has permissions of its own."""
    assert routes_ids(routed(Orders)) == ["E022"]


def test_no_url_conf_is_no_views() -> None:
    with override_settings(ROOT_URLCONF=None):
        assert check_routes() == []


def test_atomic_requests_needs_the_line_that_opts_out(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R13."""
    monkeypatch.setitem(settings.DATABASES, "default", POSTGRESQL | {"ATOMIC_REQUESTS": True})

    @method_decorator(transaction.non_atomic_requests, name="dispatch")
    class OptedOut(Good):
        pass

    @method_decorator(transaction.non_atomic_requests, name="dispatch")
    class OptedOutOrders(Orders):
        greet = None  # type: ignore[assignment]

    assert routes_ids(path("a/", Good.as_view())) == ["E020"]
    assert routes_ids(path("a/", function)) == ["E020"]
    assert routes_ids(path("a/", OptedOut.as_view())) == []
    assert routes_ids(routed(OptedOutOrders)) == []
    assert routes_ids(path("a/", transaction.non_atomic_requests(function))) == []
    monkeypatch.setitem(settings.DATABASES, "other", POSTGRESQL | {"ATOMIC_REQUESTS": True})
    assert routes_ids(path("a/", OptedOut.as_view())) == ["E020"]


def test_one_operation_name_for_two_handlers_is_refused() -> None:
    """R6."""

    class Other(Base):
        @idempotent(operation="good")
        def post(self, request: Request) -> Response:
            return Response()

    assert routes_ids(path("a/", Good.as_view()), path("b/", Other.as_view())) == ["E021"]
    assert routes_ids(path("a/", Good.as_view()), path("b/", Good.as_view())) == []


@pytest.mark.parametrize("permissions", [[], [AllowAny]])
def test_anonymous_callers_need_a_scope(permissions: list[Any]) -> None:
    """R5."""

    class Open(Good):
        permission_classes = permissions

    class Named(Base):
        permission_classes = permissions

        @idempotent(operation="named", scope=lambda request: "all")
        def post(self, request: Request) -> Response:
            return Response()

    class Decides(Open):
        def get_permissions(self) -> Any:
            return []

    assert routes_ids(path("a/", Open.as_view())) == ["E022"]
    assert routes_ids(path("a/", Named.as_view())) == []
    assert routes_ids(path("a/", Decides.as_view())) == []
    with override_settings(IDEMPOTENCY={"SCOPE": lambda request: "all"}):
        assert routes_ids(path("a/", Open.as_view())) == []


def test_a_view_that_is_not_drfs_is_refused() -> None:
    @idempotent(operation="plain")
    def plain(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    assert routes_ids(path("a/", plain)) == ["E023"]


def test_a_decorator_that_the_method_never_reaches_is_refused() -> None:
    """R2."""

    class Replace(Base):
        @idempotent(operation="replace")
        def put(self, request: Request) -> Response:
            return Response()

    class Chosen(Base):
        @idempotent(operation="chosen", methods=["put"])
        def put(self, request: Request) -> Response:
            return Response()

    assert routes_ids(path("a/", Replace.as_view())) == ["E024"]
    assert routes_ids(path("a/", Chosen.as_view())) == []


def test_a_method_that_is_left_out_beside_another_is_a_warning() -> None:
    """R2."""

    @api_view(["POST", "PUT", "GET"])
    @permission_classes([IsAuthenticated])
    @idempotent(operation="both")
    def both(request: Request) -> Response:
        return Response()

    assert routes_ids(path("a/", both)) == ["W021"]


def test_safe_methods_take_no_keys() -> None:
    """R2, K2."""

    class Safe(Base):
        @idempotent(operation="safe", methods=["POST", "GET"])
        def post(self, request: Request) -> Response:
            return Response()

    assert routes_ids(path("a/", Safe.as_view())) == ["E025"]


@pytest.mark.parametrize(
    ("operation", "found"),
    [(None, "W020"), ("", "E026"), ("x" * 101, "E026"), ("a\x00b", "E026"), ("x" * 100, None)],
)
def test_an_operation_has_a_permanent_name_that_fits(
    operation: str | None, found: str | None
) -> None:
    """R6."""

    class View(Base):
        @idempotent(operation=operation)
        def post(self, request: Request) -> Response:
            return Response()

    assert routes_ids(path("a/", View.as_view())) == ([found] if found else [])


# -- surroundings ------------------------------------------------------------------------------------

CORS = "corsheaders.middleware.CorsMiddleware"
COMMON = "django.middleware.common.CommonMiddleware"
ALLOWED = {"CORS_ALLOW_HEADERS": ["accept", "Idempotency-Key"]}
EXPOSED = {
    "CORS_EXPOSE_HEADERS": ["idempotent-replayed", "Idempotency-Key", "Retry-After", "Location"]
}


@pytest.mark.parametrize(
    ("values", "middleware", "found"),
    [
        (ALLOWED | EXPOSED, [CORS, COMMON], []),
        (EXPOSED, [CORS, COMMON], ["W030"]),
        (ALLOWED, [CORS], ["W031"]),
        (ALLOWED | {"CORS_EXPOSE_HEADERS": ["Location"]}, [CORS], ["W031"]),
        (ALLOWED | EXPOSED, [COMMON, CORS], ["W032"]),
        (ALLOWED | EXPOSED, [COMMON], ["W032"]),
    ],
)
def test_browsers_may_send_keys_and_see_the_marks(
    values: dict[str, Any], middleware: list[str], found: list[str]
) -> None:
    """B10."""

    class Settings:
        INSTALLED_APPS = ["corsheaders"]
        MIDDLEWARE = middleware

    for name, value in values.items():
        setattr(Settings, name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("idempotency.checks.middleware.settings", Settings)
        assert ids(check_middleware()) == found


def test_another_keeper_of_keys_is_a_warning() -> None:
    with override_settings(MIDDLEWARE=[COMMON, "drf_idempotency.middleware.Middleware"]):
        assert ids(check_middleware()) == ["W033"]
    with override_settings(MIDDLEWARE=[COMMON]):
        assert check_middleware() == []
