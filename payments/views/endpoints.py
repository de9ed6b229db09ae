"""Where a merchant is told of events. None of these writes needs a key: done twice, each is as good as done once.

To send an event again takes one all the same: a caller who repeats the request wants it sent once more, not twice.
"""

import uuid
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.decorators import idempotent
from idempotency.openapi import problems
from payments import completion, queries
from payments.models import Delivery, Endpoint
from payments.serializers import (
    DeliveryOut,
    EndpointChangeIn,
    EndpointIn,
    EndpointMadeOut,
    EndpointOut,
    SecretOut,
)
from payments.views.base import MerchantViewSet

_DELIVERY = "deliveries/(?P<webhook_id>msg_[0-9a-f]{32})"
_WEBHOOK_ID = OpenApiParameter(
    "webhook_id",
    {"type": "string", "pattern": "^msg_[0-9a-f]{32}$"},
    OpenApiParameter.PATH,
    description="The event's `webhook-id`",
)


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

    @extend_schema(parameters=[_WEBHOOK_ID], responses={200: DeliveryOut})
    @action(detail=True, methods=["get"], url_path=_DELIVERY, pagination_class=None)
    def delivery(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one event that was sent there, with each try."""
        return Response(DeliveryOut(self._delivery()).data)

    @extend_schema(
        parameters=[_WEBHOOK_ID],
        request=None,
        responses={202: DeliveryOut, **problems("delivery-waiting", "endpoint-disabled")},
    )
    @action(detail=True, methods=["post"], url_path=f"{_DELIVERY}/redeliver", pagination_class=None)
    @idempotent(operation="webhooks.redeliver")
    def redeliver(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Send an event once more that has arrived or was given up, under the same `webhook-id`."""
        delivery = completion.redeliver(self._delivery())
        where = delivery.get_absolute_url()
        self.claim.link(
            resource=where, reference=delivery.webhook_id, summary=f"{delivery.event} once more"
        )
        return Response(DeliveryOut(delivery).data, status=202, headers={"Location": where})

    def get_queryset(self) -> QuerySet[Endpoint]:
        """Return what the caller may see."""
        return queries.endpoints_of(self.merchant)

    def _delivery(self) -> Delivery:
        """Return the delivery of the address. Raises: Http404."""
        sent = queries.deliveries_of(self.get_object()).select_related("endpoint")
        found: Delivery = get_object_or_404(sent, pk=uuid.UUID(self.kwargs["webhook_id"][4:]))
        return found


def _with_secret(shown: Any, secret: str) -> Response:
    return Response({**shown, "secret": secret}, 201, headers={"Cache-Control": "no-store"})
