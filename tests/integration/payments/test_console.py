"""The console's lists of payments: for looking, found by whole numbers, a fixed number of queries."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.gateway.fake import FakeGateway
from payments.models import Payment, Refund
from tests.integration.payments.conftest import Shop

pytestmark = pytest.mark.usefixtures("no_broker")

LISTS = ["payment", "refund", "payout", "receipt", "transfer", "account"]


@pytest.fixture
def console(transactional_db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def paid(shop: Shop, fake: FakeGateway) -> Payment:
    for order in ("881", "882"):
        made = shop.pay(order_id=order).json()
        shop.post(f"/api/payments/{made['id']}/refunds/", {"amount": 1})
    return Payment.objects.get(order_id="881")


@pytest.mark.parametrize("name", LISTS)
def test_every_list_is_shown_and_changes_nothing(console: Client, paid: Payment, name: str) -> None:
    assert console.get(f"/admin/payments/{name}/").status_code == 200
    assert console.get(f"/admin/payments/{name}/add/").status_code == 403


def test_a_row_leads_to_its_key(console: Client, paid: Payment) -> None:
    page = console.get(f"/admin/payments/payment/{paid.pk}/change/")

    assert f"/admin/idempotency/key/{paid.key_id}/change/" in page.content.decode()
    assert b'name="_save"' not in page.content


@pytest.mark.parametrize("by", ["order_id", "gateway_reference", "pk", "key_id"])
def test_a_payment_is_found_by_a_whole_number_only(console: Client, paid: Payment, by: str) -> None:
    whole = str(getattr(paid, by))

    assert [row.pk for row in found(console, whole)] == [paid.pk]
    assert found(console, whole[:-1]) == []


def test_a_list_asks_no_more_for_more_rows(console: Client, shop: Shop, paid: Payment) -> None:
    with CaptureQueriesContext(connection) as few:
        console.get("/admin/payments/refund/")
    for _ in range(5):
        shop.post(f"/api/payments/{paid.pk}/refunds/", {"amount": 1})
    with CaptureQueriesContext(connection) as more:
        console.get("/admin/payments/refund/")

    assert Refund.objects.count() == 7
    assert len(more) <= len(few)


def found(console: Client, text: str) -> list[Any]:
    page = console.get("/admin/payments/payment/", {"q": text})
    return list(page.context["cl"].result_list)
