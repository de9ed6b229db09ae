"""What the reconciler answers later is what the view would have answered, byte for byte (R36)."""

import re
import uuid

import psycopg.errors
import pytest
from django.db import OperationalError

from idempotency.admin import audit
from idempotency.models import Event, Key, Step
from idempotency.operations import runner
from idempotency.reconciliation import Refused, Report, settle_by_hand
from idempotency.types import News, Pending, State
from payments.gateway import using
from payments.gateway.fake import Act, FakeGateway
from payments.gateway.fakebooks import Books
from payments.models import Payment
from tests.integration.payments.conftest import Shop, settle_unknown

PAYOUT = {"amount": 700, "currency": "EUR", "destination": "acct_1Tests"}
NAMES = re.compile(
    rb'"(?:[0-9a-f]{8}-[0-9a-f-]{27}|[a-z]+_[0-9A-Za-z]+|[0-9T:.-]+Z)"|/[0-9a-f-]{36}/'
)


def unnamed(text: bytes) -> bytes:
    """Blank out what is each payment's own: ids and times."""
    return NAMES.sub(b"*", text)


@pytest.mark.parametrize(
    ("source", "status", "row"),
    [
        ("pm_card_visa", 201, "succeeded"),
        ("pm_card_processing", 201, "processing"),
        ("pm_card_chargeDeclined", 402, "declined"),
        ("pm_card_authenticationRequired", 402, "action_required"),
    ],
)
def test_a_payment_found_by_a_look_up_is_answered_as_by_the_view(
    shop: Shop, fake: FakeGateway, source: str, status: int, row: str
) -> None:
    seen = shop.pay(source=source)
    fake.next(Act.LOSE_ANSWER)
    assert shop.pay(key="lost", source=source).status_code == 504
    settle_unknown()
    found = shop.pay(key="lost", source=source)

    assert (seen.status_code, found.status_code) == (status, status)
    if status == 402:
        assert found.content == seen.content
    assert unnamed(found.content) == unnamed(seen.content)
    for header in ("Content-Type", "Location"):
        assert unnamed(found.get(header, "").encode()) == unnamed(seen.get(header, "").encode())
    assert found["Idempotent-Replayed"] == "true"
    assert {payment.status for payment in Payment.objects.all()} == {row}


def test_a_charge_that_never_was_is_released_and_made_by_the_same_payment(
    shop: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_REQUEST)
    shop.pay(key="k1")
    settle_unknown()
    assert Payment.objects.get().status == "not_charged"

    assert shop.pay(key="k1").status_code == 201
    assert Payment.objects.get().status == "succeeded"
    assert len(fake.effects) == 1


def test_an_unreachable_gateway_is_no_verdict(shop: Shop, fake: FakeGateway) -> None:
    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1")
    fake.unreachable = True
    settle_unknown()

    assert shop.pay(key="k1").json()["code"] == "outcome-unknown"
    assert Payment.objects.get().status == "pending"


def lost(shop: Shop, fake: FakeGateway, act: Act = Act.LOSE_ANSWER) -> None:
    """Leave `k1` unknown, with a look-up that gave no verdict."""
    fake.next(act)
    assert shop.pay(key="k1").status_code == 504
    Key.objects.filter(key="k1").update(lookups=1)


def by_hand(*, happened: bool, **evidence: str) -> Report:
    return settle_by_hand(
        key_id=Key.objects.get(key="k1").id,
        happened=happened,
        actor="ops",
        reason="Seen on the gateway's dashboard.",
        evidence=evidence,
    )


def handled(alarm: Event) -> bool:
    return audit.handle(
        form=uuid.uuid4(), event_id=alarm.pk, actor="ops", reason="Given back, ticket 17."
    )


def test_a_person_who_saw_the_charge_settles_it_with_the_views_answer(
    shop: Shop, fake: FakeGateway
) -> None:
    lost(shop, fake)
    fake.unreachable = True
    assert by_hand(happened=True, reference="pi_seen").state is State.COMPLETED

    answer = shop.pay(key="k1")
    assert (answer.status_code, answer.json()["status"]) == (201, "succeeded")
    assert answer.json()["gateway_reference"] == "pi_seen"


def test_the_gateway_is_asked_about_the_id_that_a_person_has_read(
    shop: Shop, fake: FakeGateway
) -> None:
    """What is written down is its own word: the charge may be processing yet."""
    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1", source="pm_card_processing")
    Key.objects.update(lookups=1)
    fake.hidden = True
    by_hand(happened=True, reference=fake.things[0].id)
    assert shop.pay(key="k1", source="pm_card_processing").json()["status"] == "processing"


@pytest.mark.parametrize("reachable", [True, False])
def test_another_payments_id_is_refused_and_the_key_can_be_settled_all_the_same(
    shop: Shop, fake: FakeGateway, reachable: bool
) -> None:
    others = shop.pay(order_id="880").json()["gateway_reference"]
    lost(shop, fake)
    fake.unreachable = not reachable
    with pytest.raises(Refused, match=others):
        by_hand(happened=True, reference=others)
    assert Step.objects.get(key__key="k1").applied_at is None

    fake.unreachable = False
    settle_unknown()
    assert shop.pay(key="k1").status_code == 201
    assert len(fake.effects) == 2


@pytest.mark.parametrize("declined", [True, False])
def test_an_id_that_says_otherwise_is_refused(
    shop: Shop, fake: FakeGateway, declined: bool
) -> None:
    fake.next(Act.LOSE_ANSWER if declined else Act.LOSE_REQUEST)
    shop.pay(key="k1", source="pm_card_chargeDeclined")
    Key.objects.update(lookups=1)
    with pytest.raises(Refused, match="The gateway says"):
        by_hand(happened=True, reference=fake.things[0].id if declined else "pi_mistyped")
    settle_unknown()
    assert Key.objects.get().state == ("completed" if declined else "released")
    assert Payment.objects.get().status == ("declined" if declined else "not_charged")


@pytest.mark.parametrize("keyed", [True, False])
def test_what_the_gateway_has_not_decided_is_not_settled_as_not_happened(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    """On a gateway without keys the next try would be a second charge."""
    fake = FakeGateway(settling_time=0, keyed=keyed)
    with using(fake):
        lost(shop, fake)
        monkeypatch.setattr(fake, "look_up_charge", lambda _: Pending())
        with pytest.raises(Refused, match="not decided"):
            by_hand(happened=False)
        assert shop.pay(key="k1").json()["code"] == "outcome-unknown"
        assert len(fake.effects) == 1

        monkeypatch.undo()
        settle_unknown()
        assert shop.pay(key="k1").status_code == 201
        assert len(fake.effects) == 1


def test_a_second_charge_that_a_look_up_finds_is_raised_once(shop: Shop) -> None:
    """Without keys, a send that was late is a second charge; where no event tells of it, only a look-up does."""
    fake = FakeGateway(settling_time=0, keyed=False)
    with using(fake):
        lost(shop, fake)
        fake.charge(fake.sends[0])
        settle_unknown()
    assert shop.pay(key="k1").json()["gateway_reference"] == "charge_1"
    alarm = Event.objects.get(kind="late-news")
    assert (alarm.detail["news"], alarm.detail["gateway_reference"]) == ("twice", "charge_2")
    assert Key.objects.get().needs_person_reason == News.TWICE.sentence


@pytest.mark.parametrize("looked_up", [True, False])
def test_another_sum_than_was_asked_for_is_raised_whoever_hears_of_it(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch, looked_up: bool
) -> None:
    monkeypatch.setattr(Books, "_currency", lambda *_: "USD")
    if looked_up:
        lost(shop, fake)
        settle_unknown()
    assert shop.pay(key="k1").status_code == 201
    assert Payment.objects.get().status == "succeeded"
    alarm = Event.objects.get(kind="late-news")
    assert (alarm.actor, alarm.detail["said"], alarm.detail["expected"]) == (
        "answer",
        "12.00 USD",
        "12.00 UAH",
    )
    key = Key.objects.get()
    assert (key.state, key.needs_person_reason) == ("completed", News.DIFFERENT.sentence)

    assert handled(alarm)
    key.refresh_from_db()
    assert (key.needs_person_since, key.needs_person_reason) == (None, "")


@pytest.mark.parametrize(("path", "body"), [("refunds", {"amount": 500}), ("payouts", PAYOUT)])
def test_so_is_another_sum_of_deferred_work(
    shop: Shop,
    fake: FakeGateway,
    no_broker: None,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, object],
) -> None:
    paid = shop.pay().json()["id"]
    monkeypatch.setattr(Books, "_currency", lambda *_: "USD")
    answer = shop.post(
        f"/api/payments/{paid}/refunds/" if path == "refunds" else "/api/payouts/", body
    )
    assert answer.status_code == 202
    assert runner.drain() == 1
    assert Event.objects.get(kind="late-news").detail["news"] == "different"
    assert Key.objects.get(deferred=True).needs_person_reason == News.DIFFERENT.sentence


def test_a_full_disk_while_a_key_is_finished_calls_nobody(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deferred half has done so from the start: an outage of ours would call a person for each key."""
    lost(shop, fake)

    def full(**_: object) -> Payment:
        raise OperationalError("could not extend file") from psycopg.errors.DiskFull()

    with monkeypatch.context() as patched:
        patched.setattr("payments.services.charging.record_charge", full)
        settle_unknown()
    key = Key.objects.get()
    assert (key.state, key.needs_person_since) == ("unknown", None)

    settle_unknown()
    assert shop.pay(key="k1").status_code == 201
    assert len(fake.effects) == 1
