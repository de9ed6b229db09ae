"""`POST /api/payments/` on the real ledger, with the gateway faked at the port."""

import json

import pytest
from django.conf import LazySettings

from payments.gateway.fake import Act, FakeGateway
from payments.models import Payment
from tests.integration.payments.conftest import Shop


def test_a_payment_is_charged_and_answered(shop: Shop, fake: FakeGateway) -> None:
    answer = shop.pay()

    assert answer.status_code == 201
    body = answer.json()
    payment = Payment.objects.get()
    assert answer["Location"] == f"/api/payments/{payment.pk}/"
    assert body == {
        "id": str(payment.pk),
        "order_id": "881",
        "amount": 1200,
        "currency": "UAH",
        "status": "succeeded",
        "gateway_reference": payment.gateway_reference,
        "amount_refunded": 0,
        "created_at": body["created_at"],
    }
    assert shop.client.get(answer["Location"]).json() == body
    assert [effect.amount for effect in fake.effects] == [1200]


def test_a_repeat_is_answered_with_the_same_bytes_and_charges_nothing(
    shop: Shop, fake: FakeGateway
) -> None:
    first, second = shop.pay(key="k1"), shop.pay(key="k1")

    assert (second.status_code, second.content) == (201, first.content)
    assert second["Idempotent-Replayed"] == "true"
    assert len(fake.effects) == 1


@pytest.mark.parametrize(
    ("source", "code", "status"),
    [
        ("pm_card_chargeDeclined", "payment-declined", "declined"),
        ("pm_card_authenticationRequired", "action-required", "action_required"),
    ],
)
def test_a_decline_is_a_verdict_and_is_replayed(
    shop: Shop, fake: FakeGateway, source: str, code: str, status: str
) -> None:
    first, second = shop.pay(key="k1", source=source), shop.pay(key="k1", source=source)

    assert first.status_code == second.status_code == 402
    assert first["Content-Type"] == "application/problem+json"
    assert first.json()["code"] == code
    assert first.json()["safe_new_key"] is True
    assert second.content == first.content
    assert len(fake.sends) == 1
    assert Payment.objects.get().status == status


def test_a_charge_that_was_not_made_leaves_the_key_free_and_is_made_by_the_same_payment(
    shop: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.NOT_SENT)
    first = shop.pay(key="k1")
    assert first.status_code == 503
    assert Payment.objects.get().status == "not_charged"

    second = shop.pay(key="k1")
    assert second.status_code == 201
    assert str(Payment.objects.get().pk) == second.json()["id"]
    assert len(fake.effects) == 1


def test_a_lost_answer_is_unknown_until_the_gateway_is_asked(shop: Shop, fake: FakeGateway) -> None:
    fake.next(Act.LOSE_ANSWER)
    first, second = shop.pay(key="k1"), shop.pay(key="k1")

    assert (first.status_code, second.status_code) == (504, 409)
    assert first.json()["code"] == second.json()["code"] == "outcome-unknown"
    assert shop.client.get(first.json()["resource"]).json()["status"] == "unknown"
    listed = shop.client.get("/api/payments/").json()["results"]
    assert [payment["status"] for payment in listed] == ["unknown"]
    assert len(fake.effects) == 1


def test_a_processing_charge_is_answered_as_such(shop: Shop, fake: FakeGateway) -> None:
    answer = shop.pay(source="pm_card_processing")

    assert (answer.status_code, answer.json()["status"]) == (201, "processing")
    assert fake.effects == []


def test_what_is_sent_holds_no_time_and_no_number_of_the_try(shop: Shop, fake: FakeGateway) -> None:
    """R23, E2, E6: every send of one payment is the same bytes under the same key."""
    fake.next(Act.NOT_SENT, Act.NOT_SENT)
    for _ in range(3):
        shop.pay(key="k1")

    assert len({(send.downstream_key, send.payload) for send in fake.sends}) == 1
    assert str(Payment.objects.get().pk) in json.dumps(json.loads(fake.sends[0].payload))


def test_only_own_payments_are_there(shop: Shop, rival: Shop, fake: FakeGateway) -> None:
    made = shop.pay(key="k1").json()

    assert rival.client.get(f"/api/payments/{made['id']}/").status_code == 404
    assert rival.client.get("/api/payments/").json()["results"] == []
    # R5: the same key of another merchant is another key.
    assert rival.pay(key="k1").json()["id"] != made["id"]


def test_staff_cannot_pay(shop: Shop, fake: FakeGateway) -> None:
    user = shop.merchant.api_users.get().user
    user.is_staff = True
    user.save()

    assert shop.pay().status_code == 403
    assert fake.sends == []


# -- one open payment per order, where a host wants it (R42, E12, E13) -----------------------------------------------


@pytest.fixture
def _one_per_order(settings: LazySettings) -> None:
    settings.PAYMENTS = settings.PAYMENTS | {"ONE_OPEN_PAYMENT_PER_ORDER": True}


@pytest.mark.usefixtures("_one_per_order")
def test_an_order_with_an_unknown_payment_is_not_paid_under_another_key(
    shop: Shop, rival: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1")
    second = shop.pay(key="k2")

    assert (second.status_code, second.json()["code"]) == (409, "order-open")
    assert len(fake.effects) == 1
    assert shop.pay(order_id="882").status_code == 201
    assert rival.pay().status_code == 201


@pytest.mark.usefixtures("_one_per_order")
def test_an_order_that_is_paid_or_was_declined_can_be_paid_again(
    shop: Shop, fake: FakeGateway
) -> None:
    assert shop.pay(source="pm_card_chargeDeclined").status_code == 402
    assert [shop.pay().status_code, shop.pay().status_code] == [201, 201]


@pytest.mark.usefixtures("_one_per_order")
def test_a_payment_that_was_not_charged_waits_for_the_open_one_of_its_order(
    shop: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.NOT_SENT, Act.LOSE_ANSWER)
    assert [shop.pay(key="k1").status_code, shop.pay(key="k2").status_code] == [503, 504]

    assert shop.pay(key="k1").json()["code"] == "order-open"


def test_without_the_guard_two_keys_are_two_payments(shop: Shop, fake: FakeGateway) -> None:
    assert [shop.pay().status_code, shop.pay().status_code] == [201, 201]
    assert len(fake.effects) == 2
