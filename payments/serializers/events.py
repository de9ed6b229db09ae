"""Events in the API's description: what a merchant's endpoint is sent, and what it answers."""

from typing import Any

from drf_spectacular.utils import (
    OpenApiWebhook,
    extend_schema,
    extend_schema_field,
    inline_serializer,
)
from rest_framework import serializers

from payments.serializers.endpoints import EVENTS, KINDS, PING

_ANSWERS = {
    "2XX": "It has arrived: it is not sent again.",
    "410": "Nobody listens here any more: the endpoint is disabled.",
    "default": "It is sent again, later, under the same webhook-id.",
}
_HEADERS = [
    ("webhook-id", "Names the event; the same in every try. Take each one in once."),
    ("webhook-timestamp", "When this try was signed, in seconds since the epoch."),
    ("webhook-signature", "`v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; several."),
]


def _type(names: list[str]) -> Any:
    @extend_schema_field({"type": "string", "enum": names})
    class EventType(serializers.CharField):
        pass

    return EventType()


def _event(title: str, names: list[str], data: serializers.Serializer[Any]) -> Any:
    fields = {"type": _type(names), "timestamp": serializers.DateTimeField(), "data": data}
    return inline_serializer(f"{title}Event", fields)


def _about(name: str, form: type[serializers.Serializer[Any]]) -> OpenApiWebhook:
    title = name.capitalize()
    names = [event for event in EVENTS if event.startswith(f"{name}.")]
    data = inline_serializer(
        f"{title}EventData",
        {
            name: form(),
            "version": serializers.IntegerField(
                help_text="Grows with each change: keep the newest."
            ),
            "idempotency_key": serializers.CharField(
                allow_null=True, help_text="Of the request that it comes from; null: forgotten."
            ),
            "operation": serializers.UUIDField(
                allow_null=True, help_text="Id of the operation that a 202 promised; null: none."
            ),
        },
    )
    described = extend_schema(
        summary=f"A {name} has moved",
        request=_event(title, names, data),
        responses={200: None},
    )
    return OpenApiWebhook(name=name, decorator=described)


# Each is named in `SPECTACULAR_SETTINGS`; OpenAPI knows webhooks since 3.1.
PAYMENT, REFUND, PAYOUT, RECEIPT = (_about(name, form) for name, form in KINDS.values())
PINGED = OpenApiWebhook(
    name="ping",
    decorator=extend_schema(
        summary="Nothing has moved: it was asked for, to see whether it arrives",
        request=_event(
            "Ping", [PING], inline_serializer("PingData", {"endpoint": serializers.UUIDField()})
        ),
        responses={200: None},
    ),
)


def as_they_are(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Describe each webhook's headers and answers: a postprocessing hook.

    drf-spectacular describes no headers of webhooks, and takes their answers for ours.
    """
    parameters = [
        {
            "in": "header",
            "name": name,
            "required": True,
            "schema": {"type": "string"},
            "description": text,
        }
        for name, text in _HEADERS
    ]
    answers = {status: {"description": text} for status, text in _ANSWERS.items()}
    for methods in result.get("webhooks", {}).values():
        methods["post"] |= {"parameters": parameters, "responses": answers}
    return result
