"""Payouts and receipts: promised now, done later."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.decorators import idempotent
from idempotency.operations import accept
from payments import operations, queries, services
from payments.models import Payout, Receipt
from payments.serializers import PayoutIn, PayoutOut, ReceiptIn, ReceiptOut
from payments.views.base import MerchantViewSet


class PayoutViewSet(MerchantViewSet):
    """Payouts of the caller's merchant."""

    serializer_class = PayoutOut
    queryset = Payout.objects.none()

    @extend_schema(request=PayoutIn)
    @idempotent(operation=operations.PAYOUT, required=True)
    def create(self, request: Request) -> Response:
        """Promise to pay out."""
        order = PayoutIn.parse(request.data)
        payout = services.request_payout(merchant=self.merchant, order=order, claim=self.claim)
        return accept(
            claim=self.claim, operation=operations.PAYOUT, input={"payout": str(payout.pk)}
        )

    def list(self, request: Request) -> Response:
        """Return the payouts, newest first, a page at a time."""
        page = self.paginate_queryset(self.get_queryset()) or []
        queries.with_shown_status(page)
        return self.get_paginated_response(PayoutOut(page, many=True).data)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one payout."""
        payout = self.get_object()
        queries.with_shown_status([payout])
        return Response(PayoutOut(payout).data)

    def get_queryset(self) -> QuerySet[Payout]:
        """Return what the caller may see."""
        return queries.payouts_of(self.merchant)


class ReceiptViewSet(MerchantViewSet):
    """Receipts for payments of the caller's merchant."""

    serializer_class = ReceiptOut
    queryset = Receipt.objects.none()

    @extend_schema(request=ReceiptIn)
    @idempotent(operation=operations.RECEIPT)
    def create(self, request: Request) -> Response:
        """Promise to issue a receipt. Without a key, each request is a receipt of its own."""
        order = ReceiptIn.parse(request.data)
        receipt = services.request_receipt(merchant=self.merchant, order=order, claim=self.claim)
        return accept(
            claim=self.claim, operation=operations.RECEIPT, input={"receipt": str(receipt.pk)}
        )

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one receipt."""
        return Response(ReceiptOut(self.get_object()).data)

    def get_queryset(self) -> QuerySet[Receipt]:
        """Return what the caller may see."""
        return queries.receipts_of(self.merchant)
