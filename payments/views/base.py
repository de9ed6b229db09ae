"""What all views share: who may come in, whose objects they see, how lists are cut into pages."""

import re
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from idempotency.ledger import Claim
from payments.models import Merchant
from payments.queries import merchant_of
from payments.views.admission import AdmitsWrites


class ActsForMerchant(IsAuthenticated):
    """Only API users of a merchant: staff look at the console instead, and never pay."""

    message = "Only API users of a merchant may do this."

    def has_permission(self, request: Request, view: Any) -> bool:
        return super().has_permission(request, view) and merchant_of(request.user) is not None


class Pages(CursorPagination):
    """Pages by position: new rows neither shift nor repeat what was read, and nothing is counted."""

    ordering = ("-created_at", "-id")
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int:
        """Return how many are wanted. Raises: ValidationError, for what is no number from 1 to 200."""
        wanted = request.query_params.getlist(self.page_size_query_param)
        if not wanted:
            return self.page_size
        if len(wanted) > 1 or not _SIZE.fullmatch(wanted[0]) or int(wanted[0]) > self.max_page_size:
            raise ValidationError(
                {"page_size": [f"A number from 1 to {self.max_page_size} is wanted."]}
            )
        return int(wanted[0])

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Describe what is accepted."""
        described: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in described:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] |= {"minimum": 1, "maximum": self.max_page_size}
        return described


_SIZE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


class MerchantViewSet(AdmitsWrites):
    """A view of what belongs to the caller's merchant; everything else is not there."""

    permission_classes = [ActsForMerchant]
    pagination_class = Pages

    @property
    def claim(self) -> Claim:
        """The claim under which an idempotent handler runs."""
        claim: Claim = self.request.claim  # type: ignore[attr-defined]  # set by @idempotent
        return claim

    @property
    def merchant(self) -> Merchant:
        """The caller's merchant, which the permission has made sure of."""
        merchant = merchant_of(self.request.user)
        if merchant is None:
            raise RuntimeError("A view was reached without its permission.")
        return merchant
