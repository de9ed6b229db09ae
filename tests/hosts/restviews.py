"""A host of DRF views: every way to render, to version, to nest and to answer errors."""

import uuid
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.urls import include, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from djangorestframework_camel_case.parser import CamelCaseJSONParser
from djangorestframework_camel_case.render import CamelCaseJSONRenderer
from drf_standardized_errors.handler import exception_handler as standardized
from rest_framework import serializers
from rest_framework.decorators import action, api_view
from rest_framework.exceptions import APIException
from rest_framework.renderers import BrowsableAPIRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.versioning import AcceptHeaderVersioning
from rest_framework.views import APIView, exception_handler
from rest_framework.viewsets import GenericViewSet, ModelViewSet
from rest_framework_csv.renderers import CSVRenderer
from rest_framework_nested.routers import NestedSimpleRouter

from idempotency.decorators import IdempotentRequest, idempotent


class TooPoor(APIException):
    status_code = 402
    default_code = "too_poor"
    default_detail = "Too little money."


class Named(serializers.Serializer[Any]):
    first_name = serializers.CharField(required=False)
    kind = serializers.CharField(required=False)


class Whole(serializers.ModelSerializer[Group]):
    class Meta:
        model = Group
        fields = ("id", "name")


def work(request: Request) -> Response:
    """Write a row; refuse, or answer with something that is new each time."""
    group = Group.objects.create(name=uuid.uuid4().hex)
    data: Any = request.data
    if data.get("kind") == "verdict":
        raise TooPoor
    return Response(
        {"group_name": group.name, "first_name": data.get("first_name", "")}, status=201
    )


class Rendered(APIView):
    renderer_classes = [JSONRenderer, BrowsableAPIRenderer, CSVRenderer]

    @idempotent(operation="rest.rendered", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


class Camel(APIView):
    renderer_classes = [CamelCaseJSONRenderer]
    parser_classes = [CamelCaseJSONParser]

    @idempotent(operation="rest.camel", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


class Envelope(JSONRenderer):
    """The form that every answer of a host has, refusals too."""

    def render(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        context: Any = kwargs.get("renderer_context") or args[1]
        status: int = context["response"].status_code
        return super().render({"ok": status < 400, "data": data}, *args, **kwargs)


class Enveloped(APIView):
    renderer_classes = [Envelope]

    def get_exception_handler(self) -> Any:
        return exception_handler

    @idempotent(operation="rest.enveloped", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


class Versioned(APIView):
    versioning_class = AcceptHeaderVersioning

    @idempotent(operation="rest.versioned", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return Response({"version": request.version, "nonce": uuid.uuid4().hex}, status=201)


class Plainest(APIView):
    """Errors in DRF's own form."""

    def get_exception_handler(self) -> Any:
        return exception_handler

    @idempotent(operation="rest.errors.drf", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


class Standardized(APIView):
    """Errors in the form of drf-standardized-errors."""

    def get_exception_handler(self) -> Any:
        return standardized

    @idempotent(operation="rest.errors.standardized", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


class Own(APIView):
    """Errors in a form of the host's own, which also marks the transaction, as DRF's does."""

    def get_exception_handler(self) -> Any:
        def handler(exc: Exception, context: Any) -> Response | None:
            response = exception_handler(exc, context)
            if response is not None:
                response.data = {"oops": getattr(exc, "default_code", "?")}
            return response

        return handler

    @idempotent(operation="rest.errors.own", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


class Greeting(APIView):
    @idempotent(operation="rest.greeting", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return Response({"greeting": gettext("Yes"), "padding": "x" * 500})


class Atomic(APIView):
    """Has no line that opts out of ATOMIC_REQUESTS."""

    @idempotent(operation="rest.atomic", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class OptedOut(APIView):
    @idempotent(operation="rest.opted-out", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return work(request)


@transaction.non_atomic_requests
@api_view(["POST"])
@idempotent(operation="rest.opted-out.function", required=True)
def opted_out(request: IdempotentRequest) -> Response:
    return work(request)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class Orders(GenericViewSet[Group]):
    queryset = Group.objects.all()

    @idempotent(operation="rest.orders.create", required=True)
    def create(self, request: IdempotentRequest, **_: str) -> Response:
        return work(request)

    @action(detail=True, methods=["post"])
    @idempotent(operation="rest.orders.pay", required=True)
    def pay(self, request: IdempotentRequest, **_: str) -> Response:
        return work(request)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class Groups(ModelViewSet[Group]):
    """DRF's own methods, one of which calls the other."""

    queryset = Group.objects.all()
    serializer_class = Whole

    @idempotent(operation="rest.groups.create", required=True)
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().create(request, *args, **kwargs)

    @idempotent(operation="rest.groups.update", required=True, methods=("PUT", "PATCH"))
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().update(request, *args, **kwargs)

    @idempotent(operation="rest.groups.partial-update", required=True)
    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().partial_update(request, *args, **kwargs)


class Subgroups(Groups):
    """A decorated method that calls a decorated one."""

    @idempotent(operation="rest.subgroups.create", required=True)
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response = super().create(request, *args, **kwargs)
        if response.data["name"] == "refused":
            raise TooPoor
        return response


class Locking(GenericViewSet[Group]):
    """Locks what it is about to change, as a host does that counts."""

    def get_queryset(self) -> Any:
        return Group.objects.select_for_update()

    @action(detail=True, methods=["post"])
    @idempotent(operation="rest.locking.mark", required=True)
    def mark(self, request: IdempotentRequest, **_: str) -> Response:
        group = self.get_object()
        group.name += " marked"
        group.save()
        return Response({"name": group.name})


router = SimpleRouter()
router.register("locking", Locking, basename="locking")
router.register("groups", Groups, basename="groups")
router.register("subgroups", Subgroups, basename="subgroups")
router.register("shops", Orders, basename="shops")
nested = NestedSimpleRouter(router, "shops", lookup="shop")
nested.register("orders", Orders, basename="shop-orders")

urlpatterns = [
    path("rendered/", Rendered.as_view()),
    path("camel/", Camel.as_view()),
    path("enveloped/", Enveloped.as_view()),
    path("versioned/", Versioned.as_view()),
    path("errors/drf/", Plainest.as_view()),
    path("errors/standardized/", Standardized.as_view()),
    path("errors/own/", Own.as_view()),
    path("greeting/", Greeting.as_view()),
    path("atomic/", Atomic.as_view()),
    path("opted-out/", OptedOut.as_view()),
    path("opted-out/function/", opted_out),
    path("", include(router.urls)),
    path("", include(nested.urls)),
]
