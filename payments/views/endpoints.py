"""Where a merchant is told of events. None of these writes needs a key: done twice, each is as good as done once."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from payments import completion, queries
from payments.models import Endpoint
from payments.serializers import (
    DeliveryOut,
    EndpointChangeIn,
    EndpointIn,
    EndpointMadeOut,
    EndpointOut,
    SecretOut,
)
from payments.views.base import MerchantViewSet


class EndpointViewSet(ListModelMixin, RetrieveModelMixin, MerchantViewSet):
    """Endpoints of the caller's merchant."""

    serializer_class = EndpointOut
    queryset = Endpoint.objects.none()

    @extend_schema(request=EndpointIn, responses={200: EndpointOut, 201: EndpointMadeOut})
    def create(self, request: Request) -> Response:
        """Register an address, and return its secret: 200 without the secret where it is registered already."""
        order = completion.EndpointOrder(**EndpointIn.checked(request.data))
        endpoint, secret = completion.register(merchant=self.merchant, order=order)
        if not secret:
            return Response(EndpointOut(endpoint).data)
        return _with_secret(EndpointOut(endpoint).data, secret)

    @extend_schema(request=EndpointChangeIn)
    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Change what is given; `enabled` switches it off or on."""
        given = EndpointChangeIn.checked(request.data)
        endpoint = completion.change(endpoint=self.get_object(), **given)
        return Response(EndpointOut(endpoint).data)

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Remove it: nothing is sent there any more."""
        completion.remove(self.get_object())
        return Response(status=204)

    @extend_schema(request=None, responses={201: SecretOut})
    @action(detail=True, methods=["post"], pagination_class=None)
    def secrets(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Make a new secret; the ones before it sign beside it for a while, so that nothing is refused meanwhile."""
        return _with_secret({}, completion.rotate(self.get_object()))

    @extend_schema(request=None, responses={202: DeliveryOut})
    @action(detail=True, methods=["post"], pagination_class=None)
    def ping(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Send it an event that means nothing."""
        with transaction.atomic():
            delivery = completion.ping(self.get_object())
        return Response(DeliveryOut(delivery).data, status=202)

    @extend_schema(responses={200: DeliveryOut(many=True)})
    @action(detail=True, methods=["get"])
    def deliveries(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return what was sent there, newest first, with each try."""
        page = self.paginate_queryset(queries.deliveries_of(self.get_object())) or []
        return self.get_paginated_response(DeliveryOut(page, many=True).data)

    def get_queryset(self) -> QuerySet[Endpoint]:
        """Return what the caller may see."""
        return queries.endpoints_of(self.merchant)


def _with_secret(shown: Any, secret: str) -> Response:
    return Response({**shown, "secret": secret}, 201, headers={"Cache-Control": "no-store"})
