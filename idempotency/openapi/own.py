"""How this package's own views are described: an optional library is none of theirs to import."""

from typing import Any

from drf_spectacular.extensions import OpenApiViewExtension
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.openapi.problems import problems
from idempotency.operations.monitor import WAIT_AT_MOST
from idempotency.views import OperationCancelView, OperationOut, OperationView

# `@extend_schema` asks for the default schema class at once, which is made in this package: so classes are made late.
_RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    {"type": "integer", "minimum": 1},
    OpenApiParameter.HEADER,
    description="Seconds after which something can be new; absent once it is done.",
    response=[200],
)
_PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description=f"`wait=N` holds the answer until it is done, for N and at most {WAIT_AT_MOST:g} seconds. RFC 7240.",
)


class MonitorDescribed(OpenApiViewExtension):  # type: ignore[no-untyped-call]
    """The status monitor of deferred work."""

    target_class = OperationView

    def view_replacement(self) -> type[OperationView]:
        class Described(OperationView):
            @extend_schema(
                parameters=[_PREFER, _RETRY_AFTER],
                responses={200: OperationOut, **problems("result-expired")},
            )
            def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
                """Say how the operation stands, to its owner; 404 to anybody else."""
                return super().get(request, *args, **kwargs)

        return Described


class CancelDescribed(OpenApiViewExtension):  # type: ignore[no-untyped-call]
    """The cancellation of deferred work."""

    target_class = OperationCancelView

    def view_replacement(self) -> type[OperationCancelView]:
        class Described(OperationCancelView):
            @extend_schema(
                parameters=[_RETRY_AFTER],
                request=None,
                responses={200: OperationOut, **problems("too-late", "result-expired")},
            )
            def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
                """Cancel an operation that waits and of which nothing has happened; doing it twice is a success."""
                return super().post(request, *args, **kwargs)

        return Described
