"""A host whose API is looked at with a browser: one view with a form, whose effects are rows of `auth.Group`."""

from typing import Any

from django.contrib.auth.models import Group
from django.urls import path
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser
from rest_framework.permissions import AllowAny
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.browsable import BrowsableAPIRenderer
from idempotency.decorators import idempotent


class GroupIn(serializers.Serializer[Any]):
    name = serializers.CharField()


def anybody(_: Any) -> str:
    return "anybody"


class Groups(GenericAPIView[Group]):
    """Makes groups."""

    queryset = Group.objects.all()
    serializer_class = GroupIn
    permission_classes = [AllowAny]
    renderer_classes = [BrowsableAPIRenderer, JSONRenderer]
    parser_classes = [JSONParser, FormParser, MultiPartParser]

    def get(self, request: Request) -> Response:
        return Response({"groups": Group.objects.count()})

    @idempotent(operation="browsable.create", required=True, scope=anybody)
    def post(self, request: Request) -> Response:
        given = GroupIn(data=request.data)
        given.is_valid(raise_exception=True)
        if set(request.data) - {"name", "csrfmiddlewaretoken"}:
            raise AssertionError(f"the key came in the body: {sorted(request.data)}")
        Group.objects.create(name=f"{given.validated_data['name']} {Group.objects.count()}")
        return Response({"made": Group.objects.count()}, status=201)

    def put(self, request: Request) -> Response:
        return Response({})


urlpatterns = [path("groups/", Groups.as_view())]
