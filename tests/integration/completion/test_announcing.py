"""Whoever settles, the merchant is told once: in the transaction of the settlement, or not at all (R37, I6)."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.db.models.functions import Now

from idempotency.models import Key
from idempotency.operations import cancel
from idempotency.reconciliation import settle_by_hand
from payments import services
from payments.gateway.fake import Act, FakeGateway
from payments.models import Delivery, Payment, Payout
from tests.integration.completion.conftest import Hearing, Receiver, listen, work
from tests.integration.payments.conftest import Shop, settle_unknown
from tests.support.faultserver import FaultServer


def told(receiver: Receiver) -> list[tuple[str, dict[str, Any]]]:
    events = [json.loads(body) for _, body in receiver.arrived]
    return [(event["type"], event["data"]) for event in events]


def test_an_unknown_charge_that_the_reconciler_finds(
    shop: Shop, hearing: Hearing, receiver: Receiver, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_ANSWER)
    assert shop.pay(key="k1").status_code == 504
    work()
    assert told(receiver) == [], "nobody knows yet"

    settle_unknown()
    work()
    [(event, data)] = told(receiver)
    assert (event, data["idempotency_key"]) == ("payment.succeeded", "k1")
    assert shop.pay(key="k1").json() == data["payment"]
    work()
    assert len(receiver.arrived) == 1


def test_an_unknown_charge_that_did_not_happen(
    shop: Shop, hearing: Hearing, receiver: Receiver, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_REQUEST)
    assert shop.pay(key="k1").status_code == 504
    settle_unknown()
    work()
    [(event, data)] = told(receiver)
    assert (event, data["idempotency_key"]) == ("payment.not_charged", "k1")

    # The key is free: the same request may try again, and what comes of it is another event.
    assert shop.pay(key="k1").status_code == 201
    work()
    assert [event for event, _ in told(receiver)] == ["payment.not_charged", "payment.succeeded"]
    versions = [data["version"] for _, data in told(receiver)]
    assert versions == sorted(set(versions))


def test_a_charge_that_staff_have_seen(
    shop: Shop, hearing: Hearing, receiver: Receiver, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_ANSWER)
    shop.pay()
    key = Key.objects.get(state="unknown")
    Key.objects.update(lookups=1)
    settle_by_hand(
        key_id=key.pk,
        happened=True,
        actor="ann",
        reason="seen at the gateway",
        evidence={"reference": fake.things[0].id},
    )
    work()
    assert [event for event, _ in told(receiver)] == ["payment.succeeded"]


def test_a_charge_that_the_gateway_decides_later(
    shop: Shop, hearing: Hearing, receiver: Receiver, fake: FakeGateway
) -> None:
    shop.pay(source="pm_card_processing")
    work()
    fake.settle(Payment.objects.get().gateway_reference or "", succeeded=True)
    Payment.objects.update(updated_at=Now() - timedelta(hours=1))
    services.follow_up()
    work()
    assert [event for event, _ in told(receiver)] == ["payment.processing", "payment.succeeded"]


@pytest.mark.parametrize(
    ("destination", "event"), [("acct_1a", "payout.succeeded"), ("acct_invalid", "payout.refused")]
)
def test_deferred_work_names_its_operation(
    shop: Shop, hearing: Hearing, receiver: Receiver, destination: str, event: str
) -> None:
    body = {"amount": 900, "currency": "UAH", "destination": destination}
    promised = shop.post("/api/payouts/", body, key="o1").json()
    work()
    [(name, data)] = told(receiver)
    assert (name, data["operation"], data["idempotency_key"]) == (event, promised["id"], "o1")
    assert data["payout"]["id"] == str(Payout.objects.get().pk)


def test_what_was_cancelled_and_what_was_refunded(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    paid = shop.pay().json()
    for cancelled in (True, False):
        made = shop.post(f"/api/payments/{paid['id']}/refunds/", {"amount": 100}).json()
        if cancelled:
            cancel(operation_id=made["id"], actor="ann", reason="asked for by phone")
    work()
    events = [event for event, _ in told(receiver)]
    assert sorted(events) == ["payment.succeeded", "refund.abandoned", "refund.succeeded"]


def test_nobody_else_is_told(
    shop: Shop, rival: Shop, hearing: Hearing, server: FaultServer, receiver: Receiver
) -> None:
    listen(rival, f"{server.url}/rival")
    shop.pay()
    assert {d.endpoint.merchant for d in Delivery.objects.all()} == {shop.merchant}


# -- in the settlement's own transaction -------------------------------------------------------------------------------


def test_a_move_that_is_undone_was_never_announced(
    shop: Shop, hearing: Hearing, fake: FakeGateway
) -> None:
    shop.pay(source="pm_card_processing")
    Delivery.objects.all().delete()
    with transaction.atomic():
        Payment.objects.get().move("declined", decline_reason="x")
        assert Delivery.objects.count() == 1
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()
    assert Payment.objects.get().status == "processing"


def test_a_settlement_that_cannot_announce_does_not_settle(
    shop: Shop, hearing: Hearing, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The money has moved: the key is unknown, and what finishes it tells the merchant."""

    def fails(*_: object, **__: object) -> None:
        raise OperationalError("no room")

    with monkeypatch.context() as broken:
        broken.setattr("payments.completion.announcing.defer", fails)
        assert shop.pay(key="k1").status_code == 504
        assert Payment.objects.get().status == "pending"
        assert not Delivery.objects.exists()

    settle_unknown()
    assert shop.pay(key="k1").status_code == 201
    assert [d.event for d in Delivery.objects.all()] == ["payment.succeeded"]
    assert len(fake.effects) == 1


def test_two_copies_of_the_news_announce_it_once(
    shop: Shop, hearing: Hearing, fake: FakeGateway
) -> None:
    shop.pay(source="pm_card_processing")
    fake.settle(Payment.objects.get().gateway_reference or "", succeeded=True)
    stale = [Payment.objects.get() for _ in range(2)]
    moved = [
        row.move("succeeded", gateway_reference=row.gateway_reference, settled_at=Now())
        for row in stale
    ]
    assert moved == [True, False]
    assert Delivery.objects.filter(event="payment.succeeded").count() == 1


def test_who_listens_to_nothing_costs_nothing(shop: Shop, fake: FakeGateway) -> None:
    shop.pay()
    User.objects.create_user("bystander")
    assert not Delivery.objects.exists()
    assert Key.objects.count() == 1
