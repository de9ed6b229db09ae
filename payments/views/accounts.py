"""Local accounts, and transfers between them."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.decorators import idempotent
from idempotency.openapi import problems
from payments import queries, services
from payments.models import Account, Transfer
from payments.serializers import AccountOut, TransferIn, TransferOut
from payments.views.base import MerchantViewSet


class AccountViewSet(ListModelMixin, MerchantViewSet):
    """Accounts of the caller's merchant."""

    serializer_class = AccountOut
    queryset = Account.objects.none()

    def get_queryset(self) -> QuerySet[Account]:
        """Return what the caller may see."""
        return queries.accounts_of(self.merchant)


class TransferViewSet(ListModelMixin, RetrieveModelMixin, MerchantViewSet):
    """Transfers of the caller's merchant."""

    serializer_class = TransferOut
    queryset = Transfer.objects.none()

    @extend_schema(
        request=TransferIn, responses={201: TransferOut, **problems("insufficient-funds")}
    )
    @idempotent(operation="transfers.create", required=True)
    def create(self, request: Request) -> Response:
        """Move money between two accounts."""
        order = TransferIn.parse(request.data)
        made = services.transfer(merchant=self.merchant, order=order, claim=self.claim)
        return self.created(made)

    def get_queryset(self) -> QuerySet[Transfer]:
        """Return what the caller may see."""
        return queries.transfers_of(self.merchant)

    @staticmethod
    def created(made: Transfer) -> Response:
        """Return the answer to the request that made the transfer."""
        headers: dict[str, Any] = {"Location": made.get_absolute_url()}
        return Response(TransferOut(made).data, status=201, headers=headers)
