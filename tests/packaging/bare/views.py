"""What a stranger writes: a view with a key, and one that defers its work."""

import uuid

from django.contrib.auth.models import Group
from rest_framework.authentication import BasicAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.operations import accept


class Orders(APIView):
    authentication_classes = [BasicAuthentication]
    permission_classes = [IsAuthenticated]

    @idempotent(operation="shop.order", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        order = Group.objects.create(name=f"order {uuid.uuid4()}")
        return Response({"order": order.name}, status=201)


class Letters(APIView):
    authentication_classes = [BasicAuthentication]
    permission_classes = [IsAuthenticated]

    @idempotent(operation="shop.letters", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return accept(claim=request.claim, operation="shop.letter", input={"to": "alice"})
