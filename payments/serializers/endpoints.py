"""Endpoints of merchants: what comes in, and what goes out."""

import uuid
from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from payments.models import Delivery, DeliveryAttempt, Endpoint, Payment, Payout, Receipt, Refund
from payments.serializers.fields import Text, Url
from payments.serializers.incoming import Input
from payments.serializers.outgoing import PaymentOut, PayoutOut, ReceiptOut, RefundOut

PING = "endpoint.ping"
SILENT = "pending"
KINDS: dict[type[Any], tuple[str, type[serializers.Serializer[Any]]]] = {
    Payment: ("payment", PaymentOut),
    Refund: ("refund", RefundOut),
    Payout: ("payout", PayoutOut),
    Receipt: ("receipt", ReceiptOut),
}
"""What events are about: the name of a row in them, and its form, which is the API's own."""
EVENTS: Sequence[str] = (
    *(
        f"{name}.{status}"
        for model, (name, _) in KINDS.items()
        for status in model.PATHS
        if status != SILENT
    ),
    PING,
)
"""All names of events: what moved, and to which status."""


@extend_schema_field(
    {
        "type": "array",
        "items": {"type": "string", "enum": list(EVENTS)},
        "description": "Of which events it is told; empty: of all.",
    }
)
class Events(serializers.Field[list[str], Any, list[str], Any]):
    """Names of events."""

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or any(name not in EVENTS for name in data):
            raise ValidationError(f"A list of events is wanted, of {', '.join(EVENTS)}.")
        return sorted(set(data))

    def to_representation(self, value: list[str]) -> list[str]:
        return value


@extend_schema_field({"type": "boolean"})
class Switch(serializers.Field[bool, Any, bool, Any]):
    """True or false, and nothing that only looks like it."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise ValidationError("true or false is wanted.")
        return data

    def to_representation(self, value: bool) -> bool:
        return value


class EndpointIn(Input):
    """An endpoint to be registered."""

    url = Url()
    description = Text(required=False, allow_blank=True, max_length=200)
    events = Events(required=False)


class EndpointChangeIn(EndpointIn):
    """What is to be so of an endpoint."""

    url = Url(required=False)
    enabled = Switch(required=False)


class EndpointOut(serializers.ModelSerializer[Endpoint]):
    """An endpoint as its merchant sees it."""

    events = Events(read_only=True)
    enabled = serializers.SerializerMethodField()

    class Meta:
        model = Endpoint
        fields = [
            "id",
            "url",
            "description",
            "events",
            "enabled",
            "disabled_because",
            "failing_since",
            "created_at",
        ]
        read_only_fields = fields

    def get_enabled(self, endpoint: Endpoint) -> bool:
        """Return whether events go there."""
        return endpoint.status == Endpoint.ENABLED


class EndpointMadeOut(EndpointOut):
    """An endpoint that was just made, with its secret, which is never shown again."""

    secret = serializers.CharField(read_only=True)

    class Meta(EndpointOut.Meta):
        fields = [*EndpointOut.Meta.fields, "secret"]
        read_only_fields = fields


class SecretOut(serializers.Serializer[Any]):
    """A new secret of an endpoint, which is never shown again."""

    secret = serializers.CharField(read_only=True)


class AttemptOut(serializers.ModelSerializer[DeliveryAttempt]):
    """One try of a delivery."""

    class Meta:
        model = DeliveryAttempt
        fields = ["at", "status", "error", "milliseconds"]
        read_only_fields = fields


class DeliveryOut(serializers.ModelSerializer[Delivery]):
    """One event on its way to one endpoint."""

    webhook_id = serializers.CharField(read_only=True)
    about = serializers.SerializerMethodField(
        help_text="The id of the payment, refund, payout or receipt; null for a ping"
    )
    attempts = AttemptOut(many=True, read_only=True)

    class Meta:
        model = Delivery
        fields = [
            "webhook_id",
            "event",
            "about",
            "status",
            "ending",
            "created_at",
            "ended_at",
            "attempts",
        ]
        read_only_fields = fields

    def get_about(self, delivery: Delivery) -> uuid.UUID | None:
        """Return what the event is about."""
        return None if delivery.event == PING else delivery.subject_id
