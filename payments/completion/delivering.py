"""Deliver what was announced: try, and try again, until the receiver has said 2xx or it is given up.

# Note [A delivery is repeated]
The ledger repeats a call whose outcome is unknown only under a key that the other side honours. Here that key is the
`webhook-id`: it never changes, and a receiver that has it already has nothing to do. So whatever was not acknowledged
counts as not delivered and is sent again; nothing of it ever waits for a person.
"""

import uuid
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from idempotency.exceptions import CallFailed, CallRejected, Cancelled
from idempotency.ledger import Claim, names_of, sealing
from idempotency.types import CallReport, Downstream, Outcome, OutsideRequest, OutsideResult
from payments.completion import sending, signing
from payments.completion.announcing import enqueue
from payments.completion.endpoints import disable, keys_of
from payments.conf import conf
from payments.exceptions import DeliveryWaiting, EndpointDisabled, Undeliverable
from payments.models import Delivery, DeliveryAttempt, Endpoint

STEP = "deliver"
DOWNSTREAM = Downstream(
    name="merchant's endpoint", keyed=True, settling_time=0, key_memory=float(2**31)
)
GONE = 410

_PATIENCE = 5
"""Failures in a row after which an endpoint rests: its other deliveries wait with this one."""
_LONGEST_REST = 300.0
_BATCH = 500


def deliver(*, claim: Claim, delivery_id: uuid.UUID) -> dict[str, Any]:
    """Try once, as deferred work.

    Raises:
        Undeliverable: its endpoint is switched off, or it is too late.
        CallRejected: the endpoint is gone for good.
        CallFailed: it did not arrive, or its endpoint rests; try again later.
    """
    found = Delivery.objects.filter(pk=delivery_id).select_related("endpoint")
    delivery = found.annotate(now=Now()).first()
    if delivery is None or delivery.status == Delivery.DELIVERED:
        return {"delivered": delivery is not None}
    keys: list[str] = []
    if not claim.replaying:
        # What has arrived by the record is only written down: nothing that came since forbids that.
        _require_deliverable(delivery, delivery.now)
        # Before the call: where this process has not the key to read them, nothing was sent for certain.
        keys = keys_of(delivery.endpoint)
    claim.link(reference=delivery.webhook_id, summary=str(delivery)[:200])
    claim.outside_call(
        step=STEP,
        subject=f"delivery {delivery.pk}",
        request=sealing.unseal(delivery.body),
        send=partial(_send, delivery, delivery.now, keys),
        downstream=DOWNSTREAM,
    )
    _end(delivery.pk, Delivery.DELIVERED, "")
    return {"delivered": True}


def end_delivery(*, claim: Claim, error: BaseException | None) -> None:
    """End the delivery of work that is settled without success."""
    named = names_of(key_id=claim.id)
    delivery = Delivery.objects.filter(operation_id=named and named.operation_id).first()
    if delivery is None:
        return
    cancelled = "cancelled" if isinstance(error, Cancelled) else ""
    why = cancelled or getattr(error, "reason", "") or getattr(error, "code", "") or "given up"
    _end(delivery.pk, Delivery.FAILED, str(why))


def redeliver(delivery: Delivery) -> Delivery:
    """Deliver once more what has ended, because its merchant asks for it; return the delivery as it waits.

    Raises:
        EndpointDisabled: its endpoint is switched off.
        DeliveryWaiting: it has not ended.
    """
    if delivery.endpoint.status != Endpoint.ENABLED:
        raise EndpointDisabled
    if not send_again(delivery):
        raise DeliveryWaiting
    delivery.refresh_from_db()
    return delivery


def send_again(delivery: Delivery) -> bool:
    """Deliver once more what has ended, under the same webhook-id; say whether it had ended."""
    with transaction.atomic():
        ended = Delivery.objects.select_for_update(no_key=True).exclude(status=Delivery.WAITING)
        if not ended.filter(pk=delivery.pk).exists():
            return False
        Delivery.objects.filter(pk=delivery.pk).update(
            status=Delivery.WAITING,
            ending="",
            ended_at=None,
            queued_at=Now(),
            operation_id=enqueue(delivery),
        )
        return True


def forget(*, batch: int = _BATCH) -> int:
    """Delete deliveries that ended `DELIVERY_TTL` seconds ago, a batch at a time; return how many."""
    deleted = 0
    while True:
        with transaction.atomic():
            # Locked: one that is sent again at this moment has not ended any more.
            ended = Delivery.objects.select_for_update(skip_locked=True)
            old = ended.filter(ended_at__lt=Now() - timedelta(seconds=conf.DELIVERY_TTL))
            ids = list(old.order_by("ended_at").values_list("pk", flat=True)[:batch])
            Delivery.objects.filter(pk__in=ids).delete()
        deleted += len(ids)
        if len(ids) < batch:
            return deleted


# -- before ------------------------------------------------------------------------------------------------------------


def _require_deliverable(delivery: Delivery, now: datetime) -> None:
    endpoint = delivery.endpoint
    if endpoint.status != Endpoint.ENABLED:
        raise Undeliverable(reason=f"the endpoint is {endpoint.status}")
    if now - delivery.queued_at > timedelta(seconds=conf.ENDPOINT_GIVE_UP):
        raise Undeliverable(reason="given up")
    rest = _rest(endpoint, now)
    if rest > 0:
        # The code of a call that never began: it uses up no attempt.
        raise CallFailed("The endpoint rests.", code="circuit-open", retry_after=rest)


def _rest(endpoint: Endpoint, now: datetime) -> float:
    """Return for how many seconds an endpoint that keeps failing is left alone, so that it holds up no worker."""
    if endpoint.failures < _PATIENCE or endpoint.failed_at is None:
        return 0.0
    pause = min(_LONGEST_REST, 2.0 ** min(endpoint.failures - _PATIENCE, 30))
    return pause - (now - endpoint.failed_at).total_seconds()


# -- the try -----------------------------------------------------------------------------------------------------------


def _send(
    delivery: Delivery, at: datetime, keys: list[str], request: OutsideRequest
) -> OutsideResult:
    signed = signing.headers(
        webhook_id=delivery.webhook_id,
        at=int(at.timestamp()),
        body=request.payload,
        keys=keys,
    )
    tried = sending.post(url=delivery.endpoint.url, body=request.payload, headers=signed)
    _record(delivery, tried)
    if tried.arrived:
        return OutsideResult(reference=delivery.webhook_id, record={"status": tried.status})
    if tried.status == GONE:
        raise CallRejected("The endpoint answered 410 Gone.", code="gone")
    word = None if tried.retry_after is None else min(tried.retry_after, conf.ENDPOINT_GIVE_UP)
    raise CallFailed(
        tried.told,
        code="not-delivered",
        retry_after=word,
        sent=tried.sent,
        report=CallReport(
            attempts=1,
            seconds=tried.milliseconds / 1000,
            outcome=Outcome.TRANSIENT,
            last_error=tried.told,
            sent=tried.sent,
        ),
    )


def _record(delivery: Delivery, tried: sending.Tried) -> None:
    """Write down how the try ended, at once: what follows it is undone where the delivery is to be tried again."""
    # At the address that was tried: what an old one does says nothing of the one that has replaced it meanwhile.
    endpoints = Endpoint.objects.filter(pk=delivery.endpoint_id, url=delivery.endpoint.url)
    with transaction.atomic():
        DeliveryAttempt.objects.create(
            delivery=delivery,
            status=tried.status,
            error=tried.error[:200],
            milliseconds=tried.milliseconds,
        )
        if tried.arrived:
            endpoints.filter(failures__gt=0).update(failures=0, failing_since=None, failed_at=None)
            return
        still_there = endpoints.update(
            failures=F("failures") + 1,
            failed_at=Now(),
            failing_since=Coalesce(F("failing_since"), Now()),
        )
        too_long = Now() - timedelta(seconds=conf.ENDPOINT_DISABLE_AFTER)
        if still_there and tried.status == GONE:
            disable(delivery.endpoint, because="it answered 410 Gone")
        elif endpoints.filter(failing_since__lt=too_long).exists():
            disable(delivery.endpoint, because="it failed for too long")


def _end(delivery_id: uuid.UUID, status: str, ending: str) -> None:
    waiting = Delivery.objects.filter(pk=delivery_id, status=Delivery.WAITING)
    waiting.update(status=status, ending=ending[:60], ended_at=Now())
