"""What every guise of the endpoint does: one row, one answer."""

from typing import Any

from django.db import connection, transaction
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

TABLE = "CREATE TABLE IF NOT EXISTS effect (id bigserial PRIMARY KEY, name text NOT NULL)"


def effect(name: str) -> None:
    """Be the work."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effect (name) VALUES (%s)", [name])


def answer(request: Request) -> Response:
    """Be the answer."""
    data: Any = request.data
    return Response({"order_id": data["order_id"], "status": "done"}, status=201)


def work(request: Request) -> Response:
    """Do it in a transaction, as a careful view without protection does."""
    with transaction.atomic():
        effect("done")
    return answer(request)


class Bare(APIView):
    """No protection."""

    def post(self, request: Request) -> Response:
        """Do the work."""
        return work(request)


class BareCall(APIView):
    """No protection; two commits, between which a call would be made that costs nothing."""

    def post(self, request: Request) -> Response:
        """Write the intent, then the result."""
        with transaction.atomic():
            effect("pending")
        with transaction.atomic():
            effect("done")
        return answer(request)
