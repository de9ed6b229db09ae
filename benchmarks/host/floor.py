"""By hand: the fewest statements that could keep the promise, on the view's own connection.

It reads neither the key's syntax nor its scope's tenant, digests the raw body, keeps no journal, and forgets nothing.
"""

import hashlib
from typing import Any

from django.db import connection, transaction
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.host.work import answer, effect

TABLE = (
    "CREATE TABLE IF NOT EXISTS floor (scope text, operation text, key text, digest bytea, state text, "
    "status int, body bytea, UNIQUE (key, scope, operation))"
)
_CLAIM = (
    "INSERT INTO floor (scope, operation, key, digest, state) VALUES (%s, %s, %s, %s, 'in_progress') "
    "ON CONFLICT DO NOTHING RETURNING 1"
)
_READ = "SELECT digest, status FROM floor WHERE scope = %s AND operation = %s AND key = %s"
_SETTLE = (
    "UPDATE floor SET state = 'completed', status = 201, body = %s "
    "WHERE scope = %s AND operation = %s AND key = %s"
)


class Floor(APIView):
    """Insert or lose, effect, answer: one commit."""

    def post(self, request: Request) -> Response:
        """Do the work, or answer from the row."""
        digest, identity = _digest(request), _identity(request)
        with transaction.atomic():
            if not _claim(identity, digest):
                return _answered(identity, digest, request)
            effect("done")
            _settle(identity)
        return answer(request)


class FloorCall(APIView):
    """Claim and intent are committed before the call, result and answer after it: two commits."""

    def post(self, request: Request) -> Response:
        """Do the work, or answer from the row."""
        digest, identity = _digest(request), _identity(request)
        with transaction.atomic():
            if not _claim(identity, digest):
                return _answered(identity, digest, request)
            effect("pending")
        with transaction.atomic():
            effect("done")
            _settle(identity)
        return answer(request)


def _digest(request: Request) -> bytes:
    return hashlib.sha256(request.body).digest()


def _identity(request: Request) -> list[str]:
    return [str(request.user.pk), "orders", request.headers["Idempotency-Key"]]


def _claim(identity: list[str], digest: bytes) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, [*identity, digest])
        return cursor.fetchone() is not None


def _settle(identity: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE, [b'{"order_id":"o-1","status":"done"}', *identity])


def _answered(identity: list[str], digest: bytes, request: Request) -> Response:
    with connection.cursor() as cursor:
        cursor.execute(_READ, identity)
        stored, status = cursor.fetchone()
    if bytes(stored) != digest:
        return Response({"detail": "another request"}, status=422)
    data: Any = request.data
    return Response({"order_id": data["order_id"], "status": "done"}, status=status)
