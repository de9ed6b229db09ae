"""Each request to an idempotent handler is counted once, by how it was answered, also where no key was claimed."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from rest_framework.exceptions import APIException
from rest_framework.test import APIClient

from idempotency import telemetry
from idempotency.ledger import acquire
from payments.conf import conf
from payments.degradation import charging, read_only
from payments.gateway.fake import FakeGateway
from payments.views import base
from tests.integration.payments.conftest import Shop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def counted() -> Iterator[list[tuple[str, str]]]:
    """Return what the metrics count a request by: its operation and outcome."""
    kept: list[tuple[str, str]] = []
    ends = [
        telemetry.subscribe(
            telemetry.RequestRefused, lambda event: kept.append((event.operation, event.reason))
        ),
        telemetry.subscribe(
            telemetry.KeyMet, lambda event: kept.append((event.operation, event.answer))
        ),
        telemetry.subscribe(
            telemetry.RunEnded, lambda event: kept.append((event.operation, event.ending))
        ),
    ]
    yield kept
    for end in ends:
        end()


def no_key(shop: Shop) -> Any:
    return shop.post("/api/payments/", {}, key=None)


def stranger(shop: Shop) -> Any:
    return APIClient().post("/api/payments/", {}, format="json")


def staff(shop: Shop) -> Any:
    client = APIClient()
    client.force_authenticate(User.objects.create_superuser("root"))
    return client.post("/api/payments/", {}, format="json", headers={"Idempotency-Key": "k"})


def while_read_only(shop: Shop) -> Any:
    read_only().on(actor="ops", reason="moving")
    try:
        return shop.pay()
    finally:
        read_only().off(actor="ops", reason="moved")


def while_full(shop: Shop) -> Any:
    with ExitStack() as calls:
        for _ in range(conf.GATEWAY_BULKHEAD):
            calls.enter_context(charging().enter())
        return shop.pay()


def too_large(shop: Shop) -> Any:
    body = '{"order_id": "' + "x" * 3_000_000 + '"}'
    return shop.client.post(
        "/api/payments/",
        body,
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )


def reused(shop: Shop) -> Any:
    shop.pay(key="k", amount=700)
    return shop.pay(key="k")


def replayed(shop: Shop) -> Any:
    shop.pay(key="k")
    return shop.pay(key="k")


def with_a_database_that_is_gone(shop: Shop) -> Any:
    def gone(**_: object) -> None:
        raise OperationalError("gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acquire, "acquire", gone)
        return shop.pay()


class OutOfOffice(APIException):
    status_code = 418
    default_code = "order-4711"


def with_an_error_of_the_hosts_own(shop: Shop) -> Any:
    def refuse(*_: object) -> bool:
        raise OutOfOffice

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base.ActsForMerchant, "has_permission", refuse)
        return shop.pay()


WAYS: dict[str, tuple[Callable[[Shop], Any], int]] = {
    "key-missing": (no_key, 400),
    "key-invalid": (lambda shop: shop.pay(key="a,b"), 400),
    "not-authenticated": (stranger, 401),
    "permission-denied": (staff, 403),
    "body-too-large": (too_large, 413),
    "read-only": (while_read_only, 503),
    "overloaded": (while_full, 503),
    "ledger-unavailable": (with_a_database_that_is_gone, 503),
    # Its code may be any word: the status stands for it.
    "418": (with_an_error_of_the_hosts_own, 418),
    "free": (lambda shop: shop.pay(amount=0), 400),
    "settled": (lambda shop: shop.pay(source="pm_card_chargeDeclined"), 402),
    "reused": (reused, 422),
    "replay": (replayed, 201),
}


@pytest.mark.parametrize(("outcome", "way"), WAYS.items(), ids=WAYS)
def test_a_request_is_counted_once_by_its_outcome(
    outcome: str,
    way: tuple[Callable[[Shop], Any], int],
    shop: Shop,
    fake: FakeGateway,
    counted: list[tuple[str, str]],
) -> None:
    send, status = way
    assert send(shop).status_code == status
    first = [("payments.create", "settled")] * (outcome in ("reused", "replay"))
    assert counted == [*first, ("payments.create", outcome)]


def test_what_has_nothing_to_do_with_a_key_is_not_counted(
    shop: Shop, counted: list[tuple[str, str]]
) -> None:
    assert APIClient().get("/api/payments/").status_code == 401
    assert shop.client.get("/api/payments/1/").status_code == 404
    assert shop.client.delete("/api/payments/").status_code == 405
    assert counted == []


def test_a_plain_view_is_counted_too(
    settings: LazySettings, counted: list[tuple[str, str]]
) -> None:
    settings.ROOT_URLCONF = "tests.hosts.plainviews"
    client = APIClient()
    client.force_login(User.objects.create_user("alice"))
    assert client.post("/order/").status_code == 400
    ((_, outcome),) = counted
    assert outcome == "key-missing"


def test_staff_see_what_was_turned_away(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry.turned_away, "_slices", deque())
    while_full(shop)
    while_full(shop)
    reused(shop)
    staff_client = Client()
    staff_client.force_login(User.objects.create_superuser("root"))
    page = staff_client.get("/admin/idempotency/heartbeat/").content.decode()
    shown = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "payments.create overloaded 2" in shown
    assert "payments.create key-reused 1" in shown
