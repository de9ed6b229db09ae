"""Payments: charge now, read later."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.decorators import idempotent
from idempotency.openapi import problems
from idempotency.operations import accept
from payments import operations, queries, services
from payments.degradation import charging
from payments.models import Payment
from payments.serializers import OrderId, PaymentIn, PaymentOut, RefundIn, RefundOut
from payments.views.base import MerchantViewSet
from payments.views.summary import WithSummary


class PaymentViewSet(WithSummary, MerchantViewSet):
    """Payments of the caller's merchant."""

    serializer_class = PaymentOut
    queryset = Payment.objects.none()
    admissions = {"create": charging}

    @extend_schema(
        request=PaymentIn,
        responses={201: PaymentOut, **problems("payment-declined", "action-required")},
    )
    @idempotent(operation="payments.create", required=True)
    def create(self, request: Request) -> Response:
        """Charge a customer now."""
        order = PaymentIn.parse(request.data)
        payment = services.create_payment(merchant=self.merchant, order=order, claim=self.claim)
        return self.created(payment)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "order_id",
                {"type": "string", "pattern": "^[!-~]{1,64}$"},
                description="Only the payments of this order",
            )
        ]
    )
    def list(self, request: Request) -> Response:
        """Return the payments, newest first, a page at a time: all, or those of one order."""
        found = queries.payments_of(self.merchant, order_id=self._wanted_order())
        page = self.paginate_queryset(found) or []
        queries.with_shown_status(page)
        return self.get_paginated_response(PaymentOut(page, many=True).data)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one payment."""
        payment = self.get_object()
        queries.with_shown_status([payment])
        return Response(PaymentOut(payment).data)

    @extend_schema(responses={200: RefundOut(many=True)})
    @action(detail=True, methods=["get"], pagination_class=None)
    def refunds(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the refunds of one payment, oldest first."""
        found = queries.refunds_of(self.get_object())
        queries.with_shown_status(found)
        return Response(RefundOut(found, many=True).data)

    @extend_schema(request=RefundIn, responses=problems("not-refundable", "refund-too-large"))
    @refunds.mapping.post
    @idempotent(operation=operations.REFUND, required=True)
    def refund(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Promise to give back a payment, or a part of it."""
        refund = services.request_refund(
            payment=self.get_object(), order=RefundIn.parse(request.data), claim=self.claim
        )
        return accept(
            claim=self.claim, operation=operations.REFUND, input={"refund": str(refund.pk)}
        )

    def get_queryset(self) -> QuerySet[Payment]:
        """Return what the caller may see."""
        return queries.payments_of(self.merchant)

    def _wanted_order(self) -> str | None:
        """Return the order whose payments are wanted, or None. Raises: ValidationError, for what cannot be one."""
        wanted = self.request.query_params.getlist("order_id")
        if not wanted:
            return None
        if len(wanted) > 1:
            raise ValidationError({"order_id": ["One order is wanted."]})
        try:
            return OrderId().to_internal_value(wanted[0])
        except ValidationError as error:
            raise ValidationError({"order_id": error.detail}) from error

    @staticmethod
    def created(payment: Payment) -> Response:
        """Return the answer to the request that made the payment, whoever gives it and whenever."""
        headers = {"Location": payment.get_absolute_url()}
        return Response(PaymentOut(payment).data, status=201, headers=headers)
