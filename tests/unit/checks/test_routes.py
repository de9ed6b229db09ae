"""Each decorated view that cannot keep its promise is reported by its number."""

from typing import Any

import pytest
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import URLPattern, URLResolver, include, path
from django.utils.decorators import method_decorator
from django.views import View
from rest_framework.decorators import action, api_view, permission_classes
from rest_framework.generics import CreateAPIView, UpdateAPIView
from rest_framework.permissions import AllowAny, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from idempotency.checks import check_routes
from idempotency.checks.walk import bare_handlers
from idempotency.decorated import config_at
from idempotency.decorators import idempotent
from tests.unit.checks.support import ids

POSTGRESQL = {"ENGINE": "django.db.backends.postgresql"}


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


def test_plain_django_views_are_found_and_judged_too(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    @login_required
    @idempotent(operation="plain")
    def plain(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    class Plain(View):
        @idempotent(operation="plain.class")
        def post(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()

        @idempotent(operation="plain.class.put")
        def put(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()

    assert routes_ids(path("a/", plain), path("b/", Plain.as_view())) == ["E024"]
    monkeypatch.setitem(settings.DATABASES, "default", POSTGRESQL | {"ATOMIC_REQUESTS": True})
    assert routes_ids(path("a/", plain)) == ["E020"]
    assert routes_ids(path("a/", transaction.non_atomic_requests(plain))) == []


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


@method_decorator(idempotent(operation="whole", methods=["POST"]), name="dispatch")
class Whole(Base):
    def post(self, request: Request) -> HttpResponse:
        return HttpResponse()


@method_decorator(idempotent(operation="plain"), name="dispatch")
class PlainWhole(View):
    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


def test_a_view_of_drf_is_not_decorated_as_a_whole() -> None:
    """A replay would be answered before anybody asked who calls (R1)."""
    routes = [path("a/", Whole.as_view()), path("b/", Whole.as_view())]
    assert routes_ids(*routes, path("c/", PlainWhole.as_view())) == ["E027"]


class Enveloping(Good):
    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response.data = {"data": response.data}
        return super().finalize_response(request, response, *args, **kwargs)


def test_what_changes_a_body_after_it_is_kept_is_reported() -> None:
    """Its first answer would come without, and its replay be a 500."""
    assert routes_ids(path("a/", Enveloping.as_view())) == ["W022"]


class Creates:
    @idempotent(operation="inherited")
    def post(self, request: Request) -> Response:
        return Response()


class Closed(Creates, Base):
    pass


class Open(Creates, Base):
    permission_classes: Any = [AllowAny]


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class OptedOut(Creates, Base):
    pass


def test_each_view_that_inherits_a_handler_is_judged(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    routes = (path("a/", Closed.as_view()), path("b/", Open.as_view()))
    with override_settings(ROOT_URLCONF=routes):
        (message,) = check_routes()
    assert message.id == "idempotency.E022"
    assert message.msg.startswith(f"{__name__}.Creates.post of {__name__}.Open lets anonymous")
    monkeypatch.setitem(settings.DATABASES, "default", POSTGRESQL | {"ATOMIC_REQUESTS": True})
    assert routes_ids(path("a/", OptedOut.as_view()), path("b/", Closed.as_view())) == ["E020"]


class Created(CreateAPIView[Any]):
    permission_classes: Any = [AllowAny]

    @idempotent(operation="created")
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response()


class Updated(UpdateAPIView[Any]):
    permission_classes: Any = [IsAuthenticated]

    @idempotent(operation="updated", methods=["PUT"])
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return Response()


def test_what_drfs_generic_views_call_is_found_and_judged_too() -> None:
    """`post()` is DRF's, and `create()` the host's; `update()` is reached by PUT and PATCH."""
    routes = (path("a/", Created.as_view()), path("b/", Updated.as_view()))
    assert routes_ids(*routes) == ["E022", "W021"]
    with override_settings(ROOT_URLCONF=routes):
        assert [(one.route, one.method) for one in bare_handlers()] == [("b/", "PATCH")]
        assert config_at("/a/", "POST") is not None
        assert config_at("/b/", "PATCH") is None
