"""The console and payments: lists for looking, found by whole numbers; an order paid twice is seen to be."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from idempotency.models import Key
from payments import services
from payments.gateway.fake import Act, FakeGateway
from payments.models import Account, Payment, Refund
from tests.integration.payments.conftest import Shop
from tests.integration.payments.test_deferred import work

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
    page = console.get(f"/admin/payments/{name}/")
    assert f"<h1>{name.capitalize()}s</h1>" in page.content.decode()
    assert console.get(f"/admin/payments/{name}/add/").status_code == 403


def test_a_row_leads_to_its_key(console: Client, paid: Payment) -> None:
    page = console.get(f"/admin/payments/payment/{paid.pk}/change/")

    assert f"/admin/idempotency/key/{paid.key_id}/change/" in page.content.decode()
    assert b'name="_save"' not in page.content


def test_no_page_says_that_nothing_was_done_to_a_row(console: Client, paid: Payment) -> None:
    history = console.get(f"/admin/payments/payment/{paid.pk}/history/")
    assert history["Location"] == "/admin/idempotency/event/"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("payment", "order, gateway reference, id, operation_ref"),
        ("refund", "order, gateway reference, id, operation_ref"),
        ("payout", "gateway reference, id, operation_ref"),
        ("receipt", "order, id, operation_ref"),
        ("transfer", "id, operation_ref"),
    ],
)
def test_a_list_with_a_search_says_what_it_finds(console: Client, name: str, found: str) -> None:
    assert f"Exact: {found}." in console.get(f"/admin/payments/{name}/").content.decode()


def test_lists_and_pages_of_money_say_in_which_zone_their_times_are(
    console: Client, paid: Payment
) -> None:
    pages = [
        console.get(f"/admin/payments/payment/{rest}").content.decode()
        for rest in ("", f"{paid.pk}/change/")
    ]
    assert "Times are in UTC." in pages[0]
    assert re.search(r"\d\d:\d\d:\d\d UTC", pages[1])


@pytest.mark.parametrize("by", ["order_id", "gateway_reference", "pk", "key_id"])
def test_a_payment_is_found_by_a_whole_number_only(console: Client, paid: Payment, by: str) -> None:
    whole = str(getattr(paid, by))

    assert [row.pk for row in found(console, whole)] == [paid.pk]
    assert found(console, whole[:-1]) == []


def test_a_row_s_page_shows_sums_with_their_currency(console: Client, paid: Payment) -> None:
    page = console.get(f"/admin/payments/payment/{paid.pk}/change/").content.decode()
    assert re.findall(r'class="readonly">([\d.]+ UAH)<', page) == [
        "12.00 UAH",
        "0.01 UAH",
        "0.00 UAH",
    ]
    assert ">1200<" not in page
    account = Account.objects.create(
        merchant=paid.merchant, name="third", currency="UAH", balance=4321
    )
    page = console.get(f"/admin/payments/account/{account.pk}/change/").content.decode()
    assert "43.21 UAH" in page
    assert "4321" not in page.replace(str(account.pk), "")


def test_a_list_asks_no_more_for_more_rows(console: Client, shop: Shop, paid: Payment) -> None:
    with CaptureQueriesContext(connection) as few:
        console.get("/admin/payments/refund/")
    for _ in range(5):
        shop.post(f"/api/payments/{paid.pk}/refunds/", {"amount": 1})
    with CaptureQueriesContext(connection) as more:
        console.get("/admin/payments/refund/")

    assert Refund.objects.count() == 7
    assert len(more) <= len(few)


# -- one order, paid twice ---------------------------------------------------------------------------------------------


def key_page(console: Client, row: Payment) -> str:
    return console.get(f"/admin/idempotency/key/{row.key_id}/change/").content.decode()


def test_two_charges_of_one_order_are_said_on_every_page(
    console: Client, shop: Shop, fake: FakeGateway
) -> None:
    shop.pay()
    shop.pay(amount=1500)
    first, second = Payment.objects.order_by("created_at")
    warning = "Order 881 was paid 2 times: 12.00 UAH"
    assert warning in console.get("/admin/payments/payment/", {"q": "881"}).content.decode()
    assert warning in console.get(f"/admin/payments/payment/{first.pk}/change/").content.decode()
    for mine, other in ((first, second), (second, first)):
        page = key_page(console, mine)
        assert "Done 2 times" in page
        assert f"/admin/idempotency/key/{other.key_id}/change/" in page
        assert f"/admin/payments/payment/{other.pk}/change/" in page
        # The advice does not say that nothing is to be done.
        assert "Ask the caller whether both were meant" in page
        assert "Repeats of the same request did nothing more" not in page


def test_once_one_of_them_is_refunded_nobody_is_warned(
    console: Client, shop: Shop, fake: FakeGateway
) -> None:
    shop.pay()
    shop.pay()
    first, second = Payment.objects.order_by("created_at")
    shop.post(f"/api/payments/{first.pk}/refunds/", {"amount": 1200})
    work()
    assert (
        "paid 2 times" not in console.get("/admin/payments/payment/", {"q": "881"}).content.decode()
    )
    page = key_page(console, second)
    assert "Done 2 times" not in page
    assert "refunded since: 12.00 UAH of 12.00 UAH" in key_page(console, first)


def test_two_merchants_may_have_the_same_order_number(
    console: Client, shop: Shop, rival: Shop, fake: FakeGateway
) -> None:
    shop.pay()
    rival.pay()
    assert (
        "paid 2 times" not in console.get("/admin/payments/payment/", {"q": "881"}).content.decode()
    )
    for row in Payment.objects.all():
        assert "Done 2 times" not in key_page(console, row)


def test_part_refunds_of_one_order_are_not_called_double(
    console: Client, shop: Shop, fake: FakeGateway
) -> None:
    payment = Payment.objects.get(pk=shop.pay().json()["id"])
    for _ in range(2):
        shop.post(f"/api/payments/{payment.pk}/refunds/", {"amount": 100})
    work()
    assert Refund.objects.filter(status="succeeded").count() == 2
    assert "Done 2 times" not in key_page(console, payment)


def test_a_key_s_page_names_merchant_and_user(
    console: Client, shop: Shop, fake: FakeGateway
) -> None:
    shop.pay()
    assert "shop, user shop" in key_page(console, Payment.objects.get())


def found(console: Client, text: str) -> list[Any]:
    page = console.get("/admin/payments/payment/", {"q": text})
    return list(page.context["cl"].result_list)


# -- what a caller is told ---------------------------------------------------------------------------------------------


def test_a_refusal_says_why_without_the_stored_answer(
    console: Client, shop: Shop, paid: Payment
) -> None:
    shop.post(f"/api/payments/{paid.pk}/refunds/", {"amount": 99_999}, key="too-large")
    page = console.get(f"/admin/idempotency/key/{Key.objects.get(key='too-large').pk}/change/")
    text = page.content.decode()
    assert "<b>409 refund-too-large</b>" in text
    assert '<a href="/problems/refund-too-large/">' in text
    # It made no row, and is found by the order all the same.
    listed = console.get("/admin/idempotency/key/", {"q": "881"}).content.decode()
    assert "Refund of 999.99 UAH for order 881" in listed


def test_a_list_shows_the_status_that_the_api_shows(
    console: Client, shop: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_ANSWER)
    payment = Payment.objects.get(pk=shop.pay().json()["resource"].split("/")[-2])
    assert payment.status == "pending"
    listed = console.get("/admin/payments/payment/").content.decode()
    assert '<td class="field-status">unknown</td>' in listed
    page = console.get(f"/admin/payments/payment/{payment.pk}/change/").content.decode()
    assert "unknown</div>" in page
    assert "pending</div>" not in page


def test_nobody_is_told_that_it_is_done_while_the_gateway_may_refuse_it(
    console: Client, shop: Shop, fake: FakeGateway
) -> None:
    shop.pay(source="pm_card_processing")
    payment = Payment.objects.get()
    page = key_page(console, payment)
    assert "It is taken on and not decided yet." in page
    assert re.search(r"taken on at \S+ with 201; the gateway has not decided yet", page)
    assert "It is done." not in page
    assert "“charge” at gateway: The other side accepted it" in page
    assert "It happened" not in page

    fake.settle(payment.gateway_reference or "", succeeded=False)
    Payment.objects.update(updated_at="2020-01-01T00:00Z")
    assert services.follow_up() == 1
    page = key_page(console, payment)
    assert re.search(r"settled at \S+ with 201; no money has moved: the gateway refused it", page)
    assert "done at" not in page
    assert "It did not go through in the end." in page
    assert "It is done." not in page
    assert "It happened" not in page


@pytest.mark.parametrize(
    "asked",
    ["payment/?status=%00", "endpoint/?url__contains=token", "delivery/?endpoint__url__contains=t"],
)
def test_a_list_is_asked_by_its_filters_and_by_nothing_else(console: Client, asked: str) -> None:
    assert console.get(f"/admin/payments/{asked}").status_code == 400
