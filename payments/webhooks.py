"""`POST /api/webhooks/stripe/`: signed events, each taken in once (R40)."""

import contextlib
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.exceptions import MessageRefused
from idempotency.operations import consume
from payments import services
from payments.exceptions import EventBusy
from payments.gateway import read_event
from payments.operations import EVENTS


class StripeWebhook(APIView):
    """Events of the gateway. What they tell, and what is done about it: `services.news`.

    The sender is known by its signature over the raw body, not by credentials. Any event that was taken in is answered
    200, also one that changes nothing, or cannot be read and is raised; only what a repeat could mend is answered
    otherwise.
    """

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    @extend_schema(exclude=True)
    def post(self, request: Request) -> Response:
        """Take in one event."""
        body = request._request.body  # noqa: SLF001 - DRF has no door to the raw bytes
        event = read_event(body=body, signature=request.headers.get("Stripe-Signature", ""))
        if event is not None:
            with _busy_copies_come_again(), consume(EVENTS, event.id, message=body) as claim:
                if claim is not None:
                    came = services.take_in(event)
                    said = f"{services.headline(event)} ({came})"
                    claim.link(reference=services.about(event), summary=said)
        return Response({"received": True})


@contextlib.contextmanager
def _busy_copies_come_again() -> Any:
    # Not 200: if the copy under way fails, the sender must not believe that the event was taken in.
    try:
        yield
    except MessageRefused as refused:
        raise EventBusy from refused
