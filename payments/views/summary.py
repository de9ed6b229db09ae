"""A payment with what is nice to know beside it: the payment itself is critical, all else can be left out (R30)."""

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from payments import queries
from payments.degradation import Rung, extras
from payments.serializers import PaymentOut

_PART = inline_serializer(
    "SummaryPart",
    {
        "from": serializers.ChoiceField(["live", "stale", "default", "skipped"]),
        "age": serializers.IntegerField(
            required=False, help_text="Seconds since it was said, where it is stale."
        ),
    },
)
_OUT = inline_serializer(
    "PaymentSummary",
    {
        "payment": PaymentOut(),
        "rates": serializers.DictField(
            allow_null=True, help_text="Exchange rates; null where there are none to be had."
        ),
        "offers": serializers.ListField(child=serializers.DictField()),
        "partial": serializers.BooleanField(help_text="Whether anything is not live."),
        "sources": serializers.DictField(child=_PART),
    },
)


class WithSummary(GenericViewSet[Any]):
    """The summary, as an action of the payments' view."""

    @extend_schema(responses={200: _OUT})
    @action(detail=True, methods=["get"], pagination_class=None)
    def summary(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one payment with exchange rates and offers; `partial` and `X-Degraded` tell what is not live."""
        payment = self.get_object()
        queries.with_shown_status([payment])
        found = extras()
        body = {
            "payment": PaymentOut(payment).data,
            "rates": found.values.get("rates"),
            "offers": found.values.get("offers", []),
            "partial": found.partial,
            "sources": {
                name: {"from": part.rung.value}
                | ({"age": int(part.age)} if part.rung is Rung.STALE else {})
                for name, part in found.parts.items()
            },
        }
        return Response(body, headers=found.headers())
