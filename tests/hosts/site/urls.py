"""Views of the host: local work, an outside call, deferred work, slow work."""

import time
import uuid
from typing import Any, cast

from django.contrib import admin
from django.http import HttpRequest
from django.urls import include, path
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.operations import accept
from tests.hosts.site.models import Member, Order
from tests.support.host import outside


def tenant_of(request: HttpRequest) -> Any:
    return cast(Member, request.user).tenant


class Local(APIView):
    @idempotent(operation="site.local", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        order = Order._default_manager.create(owner=cast(Member, request.user))
        return Response({"order": str(order.id)}, status=201)


class Charge(APIView):
    @idempotent(operation="site.charge", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        order = Order._default_manager.create(owner=cast(Member, request.user))
        charge = outside(request.claim)
        return Response({"order": str(order.id), "charge": charge.reference}, status=201)


class Letters(APIView):
    @idempotent(operation="site.letters", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return accept(claim=request.claim, operation="site.letter", input={"to": "bob"})


class Slow(APIView):
    """Takes long enough for its caller to leave."""

    @idempotent(operation="site.slow", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        time.sleep(0.5)
        return Response({"nonce": uuid.uuid4().hex}, status=201)


urlpatterns = [
    path("admin/", admin.site.urls),
    path("local/", Local.as_view()),
    path("charge/", Charge.as_view()),
    path("letters/", Letters.as_view()),
    path("slow/", Slow.as_view()),
    path("", include("idempotency.urls")),
]
