"""One endpoint in several guises: bare, protected by hand with the fewest statements, and by the decorator."""

import hashlib

from django.db import connection, transaction
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.types import Downstream, OutsideRequest, OutsideResult

OTHER = Downstream(name="other", keyed=True, settling_time=1, key_memory=86_400)


def effect(name: str) -> None:
    """Be the work: one row."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO benchmark_effect (name) VALUES (%s)", [name])


def answer(request: Request) -> Response:
    """Be the answer: some JSON."""
    return Response({"order_id": request.data["order_id"], "status": "done"}, status=201)


class Bare(APIView):
    """No protection."""

    def post(self, request: Request) -> Response:
        with transaction.atomic():
            effect("bare")
        return answer(request)


class BareCall(APIView):
    """No protection; two commits around a call that costs nothing."""

    def post(self, request: Request) -> Response:
        with transaction.atomic():
            effect("pending")
        with transaction.atomic():
            effect("done")
        return answer(request)


CLAIM = (
    "INSERT INTO benchmark_floor (scope, operation, key, digest, state) VALUES (%s, %s, %s, %s, 'in_progress') "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
SETTLE = (
    "UPDATE benchmark_floor SET state = 'completed', status = 201, body = %s "
    "WHERE key = %s AND scope = %s AND operation = %s"
)


def claim(request: Request) -> list[str]:
    """Insert or lose."""
    identity = [str(request.user.pk), "floor", request.headers["Idempotency-Key"]]
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, [*identity, hashlib.sha256(request.body).digest()])
        assert cursor.fetchone() is not None
    return identity


def settle(identity: list[str]) -> None:
    """Keep the answer."""
    scope, operation, key = identity
    with connection.cursor() as cursor:
        cursor.execute(SETTLE, [b'{"order_id":"o-1","status":"done"}', key, scope, operation])


class Floor(APIView):
    """By hand: insert-or-lose, effect, answer; one commit."""

    def post(self, request: Request) -> Response:
        raw = request.body  # before DRF reads the stream
        with transaction.atomic():
            identity = claim(request)
            effect("floor")
            settle(identity)
        assert raw
        return answer(request)


class FloorCall(APIView):
    """By hand around a call: intent committed first, answer after; two commits."""

    def post(self, request: Request) -> Response:
        raw = request.body
        with transaction.atomic():
            identity = claim(request)
            effect("pending")
        with transaction.atomic():
            effect("done")
            settle(identity)
        assert raw
        return answer(request)


class Idempotent(APIView):
    """The decorator, local work."""

    @idempotent(operation="benchmark.local", required=True)
    def post(self, request: Request) -> Response:
        effect("idempotent")
        return answer(request)


class Call(APIView):
    """The decorator, one outside call that costs nothing."""

    @idempotent(operation="benchmark.call", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        effect("pending")
        request.claim.outside_call(step="call", request={"amount": 1}, send=send, downstream=OTHER)
        effect("done")
        return answer(request)


def send(request: OutsideRequest) -> OutsideResult:
    """Be the other side."""
    return OutsideResult(request.downstream_key[:8], {"status": "succeeded"})


urlpatterns = [
    path("bare/", Bare.as_view()),
    path("bare-call/", BareCall.as_view()),
    path("floor/", Floor.as_view()),
    path("floor-call/", FloorCall.as_view()),
    path("idempotent/", Idempotent.as_view()),
    path("call/", Call.as_view()),
]
