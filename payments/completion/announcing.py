"""An event for each move of a row: its deliveries are written with the move, or not at all."""

import json
import uuid
from datetime import UTC
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q

from idempotency.ledger import moment, names_of, sealing
from idempotency.operations import defer
from payments.models import Delivery, Endpoint, Receipt, Refund
from payments.serializers import KINDS, PING, SILENT

OPERATION = "webhooks.deliver"
SCOPE = "~webhooks"
"""Whose deliveries are in the ledger: no caller's, so no status monitor shows them."""


def announce(*, row: Any, **_: Any) -> None:
    """Write a delivery for each endpoint that wants to be told of the move; in the transaction of the move.

    A receiver of `payments.models.moved`.
    """
    kind = KINDS.get(type(row))
    if kind is None or row.status == SILENT:
        return
    name, serializer = kind
    event = f"{name}.{row.status}"
    wanted = [
        endpoint
        for endpoint in Endpoint.objects.filter(_of_merchant(row), status=Endpoint.ENABLED)
        if not endpoint.events or event in endpoint.events
    ]
    if not wanted:
        return
    named = names_of(key_id=row.key_id)
    data = {
        name: serializer(row).data,
        "version": row.version,
        "idempotency_key": named.key if named else None,
        "operation": named.operation_id if named else None,
    }
    for endpoint in wanted:
        _enqueue(endpoint, event, data, subject_id=row.pk, subject_version=row.version)


def ping(endpoint: Endpoint) -> Delivery:
    """Send an event that means nothing, to see whether it arrives; requires a transaction."""
    data = {"endpoint": str(endpoint.pk)}
    return _enqueue(endpoint, PING, data, subject_id=uuid.uuid4(), subject_version=1)


def _of_merchant(row: Any) -> Q:
    if isinstance(row, Refund | Receipt):
        return Q(merchant__payments=row.payment_id)
    return Q(merchant=row.merchant_id)


def _enqueue(
    endpoint: Endpoint, event: str, data: Any, *, subject_id: uuid.UUID, subject_version: int
) -> Delivery:
    at = moment.now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = json.dumps({"type": event, "timestamp": at, "data": data}, cls=DjangoJSONEncoder)
    delivery = Delivery(
        endpoint=endpoint,
        event=event,
        subject_id=subject_id,
        subject_version=subject_version,
        body=sealing.seal(body.encode()),
    )
    delivery.operation_id = enqueue(delivery)
    delivery.save(force_insert=True)
    return delivery


def enqueue(delivery: Delivery) -> uuid.UUID:
    """Promise the work that delivers; return its id."""
    work = {"delivery": str(delivery.pk)}
    return defer(OPERATION, work, scope=SCOPE, role=f"delivery {uuid.uuid4()}")
