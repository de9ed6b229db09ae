"""Endpoints: registered, changed, switched off and on; their secrets, made and replaced."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from rest_framework.exceptions import ValidationError

from idempotency.ledger import sealing
from payments.completion import signing
from payments.completion.addresses import refusal_of
from payments.conf import conf
from payments.models import Endpoint, EndpointSecret, Merchant

AT_MOST = 10
"""Endpoints of one merchant: each makes every settlement write one row more."""
SECRETS = 5
"""Secrets of one endpoint in force: each signs, and servers take no header of two hundred signatures."""


_CLEAN = {"failures": 0, "failing_since": None, "failed_at": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOrder:
    """What a merchant wants to be told, and where."""

    url: str
    description: str = ""
    events: list[str] = field(default_factory=list)


def register(*, merchant: Merchant, order: EndpointOrder) -> tuple[Endpoint, str]:
    """Make the endpoint and its first secret; an address that is registered already is found, not made again.

    Returns: the endpoint, and its secret, or "" where it was there before.

    Raises:
        ValidationError: the address cannot be an endpoint's, or the merchant has too many.
    """
    _require_usable(order.url)
    with transaction.atomic():
        # One at a time for each merchant: a count is no constraint.
        Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)
        present = Endpoint.objects.filter(merchant=merchant).exclude(status=Endpoint.DELETED)
        known = present.filter(url=order.url).first()
        if known is not None:
            return known, ""
        if present.count() >= AT_MOST:
            raise ValidationError({"url": [f"There are {AT_MOST} endpoints: remove one first."]})
        endpoint = Endpoint.objects.create(
            merchant=merchant, url=order.url, description=order.description, events=order.events
        )
        return endpoint, _add_secret(endpoint)


def change(
    *,
    endpoint: Endpoint,
    url: str | None = None,
    description: str | None = None,
    events: list[str] | None = None,
    enabled: bool | None = None,
) -> Endpoint:
    """Write what is given, as it is to be: doing it twice is the same as once.

    Raises:
        ValidationError: the address cannot be an endpoint's, or is another endpoint's of the merchant.
    """
    given = {"url": url, "description": description, "events": events}
    fields = {name: value for name, value in given.items() if value is not None}
    if url is not None:
        _require_usable(url)
    with transaction.atomic():
        Merchant.objects.select_for_update(no_key=True).get(pk=endpoint.merchant_id)
        others = Endpoint.objects.filter(merchant_id=endpoint.merchant_id).exclude(
            Q(status=Endpoint.DELETED) | Q(pk=endpoint.pk)
        )
        if url is not None and others.filter(url=url).exists():
            raise ValidationError({"url": ["Another endpoint of yours has this address."]})
        mine = Endpoint.objects.filter(pk=endpoint.pk)
        if url is not None:
            # What another address did says nothing of this one.
            mine.exclude(url=url).update(**_CLEAN)
        if fields:
            mine.update(**fields)
        if enabled is not None:
            enable(endpoint) if enabled else disable(endpoint, because="switched off")
    endpoint.refresh_from_db()
    return endpoint


def enable(endpoint: Endpoint) -> bool:
    """Switch a disabled endpoint on, with a clean record; say whether it was off."""
    off = Endpoint.objects.filter(pk=endpoint.pk, status=Endpoint.DISABLED)
    return bool(off.update(status=Endpoint.ENABLED, disabled_because="", **_CLEAN))


def disable(endpoint: Endpoint, *, because: str) -> bool:
    """Switch an endpoint off: nothing is announced to it, and what waits ends; say whether it was on."""
    on = Endpoint.objects.filter(pk=endpoint.pk, status=Endpoint.ENABLED)
    return bool(on.update(status=Endpoint.DISABLED, disabled_because=because[:60]))


def remove(endpoint: Endpoint) -> None:
    """Take the endpoint from the merchant's sight; its deliveries stay on record until they are purged."""
    Endpoint.objects.filter(pk=endpoint.pk).update(status=Endpoint.DELETED)


# -- secrets -----------------------------------------------------------------------------------------------------------


def rotate(endpoint: Endpoint) -> str:
    """Make a new secret and return it; those before it sign beside it for `ENDPOINT_OVERLAP` seconds more.

    Of more than `SECRETS` the oldest are dropped.
    """
    with transaction.atomic():
        # One at a time: of two at once neither would see the other's secret, and end it.
        Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
        ends = Now() + timedelta(seconds=conf.ENDPOINT_OVERLAP)
        endpoint.secrets.filter(expires_at=None).update(expires_at=ends)
        endpoint.secrets.filter(expires_at__lte=Now()).delete()
        kept = endpoint.secrets.order_by("-pk").values_list("pk", flat=True)[: SECRETS - 1]
        endpoint.secrets.exclude(pk__in=list(kept)).delete()
        return _add_secret(endpoint)


def keys_of(endpoint: Endpoint) -> list[str]:
    """Return the secrets in force, the newest first."""
    valid = endpoint.secrets.filter(Q(expires_at=None) | Q(expires_at__gt=Now()))
    return [sealing.unseal(row.sealed).decode() for row in valid.order_by("-pk")]


def _add_secret(endpoint: Endpoint) -> str:
    secret = signing.new_secret()
    EndpointSecret.objects.create(endpoint=endpoint, sealed=sealing.seal(secret.encode()))
    return secret


def _require_usable(url: str) -> None:
    why = refusal_of(url)
    if why:
        raise ValidationError({"url": [why]})
