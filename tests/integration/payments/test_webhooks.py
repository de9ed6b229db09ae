"""Signed events: taken in once, in any order, before or after our own answer (R39–R41, group F of the reports)."""

import hashlib
import hmac
import json
import re
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client
from rest_framework.test import APIClient

from idempotency.exceptions import CallFailed
from idempotency.models import Event, Key
from idempotency.operations import NotNow, run_again, runner
from idempotency.types import Absent, Applied, OutsideRequest, OutsideResult
from payments import services
from payments.gateway import using
from payments.gateway.fake import Act, FakeGateway
from payments.models import Payment, Refund
from tests.integration.payments.conftest import Shop, settle_unknown
from tests.integration.payments.test_races import at_once

pytestmark = pytest.mark.usefixtures("no_broker")

SECRET = "whsec_test"


@pytest.fixture(autouse=True)
def _secret(settings: LazySettings) -> None:
    settings.PAYMENTS = settings.PAYMENTS | {"WEBHOOK_SECRET": SECRET, "FOLLOW_EVERY": 0.1}


def told(
    row: Payment | Refund, status: str, *, gateway_id: str = "", event_id: str = ""
) -> dict[str, Any]:
    """Return an event in Stripe's form about a row."""
    thing = {
        "object": "payment_intent" if isinstance(row, Payment) else "refund",
        "id": gateway_id or row.gateway_reference or "pi_1",
        "status": status,
        "amount": row.amount,
        "currency": "uah",
        "metadata": {"reference": str(row.pk)},
        "last_payment_error": {"code": "card_declined", "message": "no", "type": "card_error"},
    }
    return {"id": event_id or f"evt_{uuid.uuid4().hex}", "type": "x", "data": {"object": thing}}


def send(
    event: dict[str, Any] | bytes,
    *,
    secret: str = SECRET,
    at: float | None = None,
    header: str = "",
) -> Any:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    stamp = int(time.time() if at is None else at)
    digest = hmac.new(secret.encode(), b"%d." % stamp + body, hashlib.sha256).hexdigest()
    return APIClient().post(
        "/api/webhooks/stripe/",
        body,
        content_type="application/json",
        headers={"Stripe-Signature": header or f"t={stamp},v1=00,v1={digest}"},
    )


def alarms() -> list[dict[str, Any]]:
    return [event.detail for event in Event.objects.filter(kind="late-news")]


@pytest.fixture
def processing(shop: Shop, fake: FakeGateway) -> Payment:
    return Payment.objects.get(pk=shop.pay(source="pm_card_processing").json()["id"])


# -- what is taken in --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "status"), [("succeeded", "succeeded"), ("requires_payment_method", "declined")]
)
def test_a_processing_payment_is_finished_by_an_event(
    processing: Payment, said: str, status: str
) -> None:
    assert send(told(processing, said)).status_code == 200

    processing.refresh_from_db()
    assert processing.status == status
    assert processing.settled_at is not None
    assert alarms() == []


def test_f2_an_event_that_comes_twice_is_answered_200_and_counts_once(processing: Payment) -> None:
    event = told(processing, "succeeded")
    assert [send(event).status_code, send(event).status_code] == [200, 200]

    processing.refresh_from_db()
    assert processing.version == 3
    assert Key.objects.filter(operation="inbox").count() == 1


def test_f2_copies_at_once_have_one_effect(shop: Shop, fake: FakeGateway) -> None:
    for _ in range(5):
        made = Payment.objects.get(pk=shop.pay(source="pm_card_processing").json()["id"])
        event = told(made, "succeeded")
        answers = at_once([partial(send, event)] * 3)

        assert {answer.status_code for answer in answers} <= {200, 503}
        assert 200 in {answer.status_code for answer in answers}
        made.refresh_from_db()
        assert (made.status, made.version) == ("succeeded", 3)


@pytest.mark.parametrize("later", ["processing", "requires_payment_method"])
def test_f3_an_older_event_does_not_take_back_what_is_settled(
    processing: Payment, later: str
) -> None:
    send(told(processing, "succeeded"))
    assert send(told(processing, later)).status_code == 200

    processing.refresh_from_db()
    assert processing.status == "succeeded"
    assert alarms() == []


def test_f1_paid_before_our_own_answer_leaves_the_row_to_the_request(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event lands while the request still waits for the gateway (P2)."""
    charge = fake.charge

    def and_tell(request: Any) -> Any:
        result = charge(request)
        at_once(
            [lambda: send(told(Payment.objects.get(), "succeeded", gateway_id=result.reference))]
        )
        return result

    monkeypatch.setattr(fake, "charge", and_tell)
    answer = shop.pay()

    assert (answer.status_code, answer.json()["status"]) == (201, "succeeded")
    assert Payment.objects.get().status == "succeeded"
    assert alarms() == []


def test_e11_an_event_brings_the_id_that_a_lost_answer_did_not(
    shop: Shop, fake: FakeGateway
) -> None:
    """Its id leads the look-up to the charge, though a search does not show it yet."""
    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1")
    fake.hidden = True
    (charge,) = fake.effects
    Key.objects.update(next_lookup_at="2999-01-01T00:00Z")
    assert send(told(Payment.objects.get(), "succeeded", gateway_id=charge.id)).status_code == 200
    assert Key.objects.filter(state="unknown", next_lookup_at__year__lt=2999).exists()

    settle_unknown()
    answer = shop.pay(key="k1")
    assert (answer.status_code, answer.json()["gateway_reference"]) == (201, charge.id)


# -- late news ---------------------------------------------------------------------------------------------------------


def test_r39_paid_after_the_key_was_released_is_true_and_raised(
    shop: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_REQUEST)
    shop.pay(key="k1")
    settle_unknown()
    assert send(told(Payment.objects.get(), "succeeded", gateway_id="pi_late")).status_code == 200

    assert Payment.objects.get().status == "succeeded"
    assert [alarm["our_books_said"] for alarm in alarms()] == ["not_charged"]
    # Whoever tries the key again gets the charge that there is.
    assert shop.pay(key="k1").json()["gateway_reference"] == "pi_late"
    assert fake.effects == []


def test_f9_paid_after_the_key_was_purged_is_true_and_raised(shop: Shop, fake: FakeGateway) -> None:
    shop.pay(source="pm_card_chargeDeclined")
    Key.objects.all().delete()
    assert send(told(Payment.objects.get(), "succeeded", gateway_id="pi_late")).status_code == 200

    assert Payment.objects.get().gateway_reference
    assert len(alarms()) == 1


def test_f9_money_without_a_row_is_raised(shop: Shop) -> None:
    stranger = Payment(order_id="1", amount=5, currency="UAH")
    assert send(told(stranger, "succeeded", gateway_id="pi_stranger")).status_code == 200

    assert [alarm["gateway_reference"] for alarm in alarms()] == ["pi_stranger"]


def test_a_second_charge_for_one_payment_is_raised_and_does_not_replace_the_first(
    shop: Shop, fake: FakeGateway
) -> None:
    shop.pay()
    first = Payment.objects.get().gateway_reference
    send(told(Payment.objects.get(), "succeeded", gateway_id="pi_second"))

    assert Payment.objects.get().gateway_reference == first
    assert [(alarm["gateway_reference"], alarm["news"]) for alarm in alarms()] == [
        ("pi_second", "twice")
    ]


def test_r39_a_late_charge_of_an_order_that_is_being_paid_again_is_raised(
    shop: Shop, fake: FakeGateway, settings: LazySettings
) -> None:
    """Where an order may have one open payment, the books have no room for the second: its event was refused."""
    settings.PAYMENTS = settings.PAYMENTS | {"ONE_OPEN_PAYMENT_PER_ORDER": True}
    fake.next(Act.LOSE_REQUEST)
    assert shop.pay(order_id="o1").status_code == 504
    settle_unknown()
    late = Payment.objects.get()
    assert shop.pay(order_id="o1", source="pm_card_processing").status_code == 201

    assert send(told(late, "processing", gateway_id="pi_late")).status_code == 200
    late.refresh_from_db()
    assert late.status == "not_charged"
    (alarm,) = alarms()
    assert (alarm["gateway_reference"], alarm["our_books_said"]) == ("pi_late", "not_charged")

    assert send(told(late, "succeeded", gateway_id="pi_late")).status_code == 200
    late.refresh_from_db()
    assert late.status == "succeeded"


def test_an_event_with_another_amount_is_raised_and_what_happened_is_written(
    processing: Payment,
) -> None:
    event = told(processing, "succeeded")
    event["data"]["object"]["amount"] = 9900
    assert send(event).status_code == 200

    processing.refresh_from_db()
    assert processing.status == "succeeded"
    (alarm,) = alarms()
    assert (alarm["news"], alarm["said"], alarm["expected"]) == (
        "different",
        "99.00 UAH",
        "12.00 UAH",
    )
    assert Key.objects.filter(pk=processing.key_id, needs_person_since__isnull=False).exists()


def test_a_charge_that_was_captured_in_part_is_raised(processing: Payment) -> None:
    event = told(processing, "succeeded")
    event["data"]["object"]["amount_received"] = 700
    send(event)
    (alarm,) = alarms()
    assert (alarm["news"], alarm["said"], alarm["expected"]) == (
        "different",
        "7.00 UAH",
        "12.00 UAH",
    )


def test_the_same_difference_is_raised_once_whoever_hears_it(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says it, and each event of the charge says it again."""
    charge = fake.charge

    def more(request: OutsideRequest) -> OutsideResult:
        made = charge(request)
        return OutsideResult(made.reference, {**made.record, "amount": 9900})

    monkeypatch.setattr(fake, "charge", more)
    shop.pay()
    event = told(Payment.objects.get(), "succeeded")
    event["data"]["object"]["amount"] = 9900
    for number in range(3):
        assert send(event | {"id": f"evt_{number}"}).status_code == 200
    assert [(alarm["said"], alarm["expected"]) for alarm in alarms()] == [
        ("99.00 UAH", "12.00 UAH")
    ]


def test_another_amount_for_what_is_settled_or_another_currency_is_raised(
    shop: Shop, fake: FakeGateway
) -> None:
    shop.pay()
    paid = Payment.objects.get()
    for changed in ({"amount": 1}, {"currency": "eur"}):
        event = told(paid, "succeeded")
        event["data"]["object"] |= changed
        send(event)
    assert [(alarm["news"], alarm["said"]) for alarm in alarms()] == [
        ("different", "0.01 UAH"),
        ("different", "12.00 EUR"),
    ]


def test_asking_again_raises_another_amount_once(
    processing: Payment, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.settle(processing.gateway_reference or "", succeeded=True)
    retrieve = fake.retrieve_charge

    def more(gateway_id: str) -> Any:
        answer = retrieve(gateway_id)
        assert isinstance(answer, Applied)
        said = answer.result
        return Applied(OutsideResult(said.reference, {**said.record, "amount": 1300}))

    monkeypatch.setattr(fake, "retrieve_charge", more)
    for finished in (1, 0):
        Payment.objects.update(updated_at="2020-01-01T00:00Z")
        assert services.follow_up() == finished
    assert [(alarm["said"], alarm["expected"]) for alarm in alarms()] == [
        ("13.00 UAH", "12.00 UAH")
    ]


# -- run again by staff ------------------------------------------------------------------------------------------------


@pytest.fixture
def lost(processing: Payment) -> Key:
    """An event that was taken in and of whose effect nothing is left, as after a mended bug or a restore."""
    send(told(processing, "succeeded"))
    message = Key.objects.get(operation="inbox")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE payments_payment DISABLE TRIGGER USER")
        cursor.execute("UPDATE payments_payment SET status = 'processing', settled_at = NULL")
        cursor.execute("ALTER TABLE payments_payment ENABLE TRIGGER USER")
    return message


def test_f6_an_old_event_is_run_again_with_a_reason_on_record(
    lost: Key, processing: Payment
) -> None:
    run_again(key_id=lost.pk, actor="olga", reason="The first one met a bug.")

    processing.refresh_from_db()
    assert processing.status == "succeeded"
    event = Event.objects.get(kind="run-again")
    assert (event.key_id, event.actor, event.reason) == (
        lost.pk,
        "olga",
        "The first one met a bug.",
    )


def test_f8_an_event_that_is_run_again_counts_once(processing: Payment) -> None:
    send(told(processing, "succeeded"))
    message = Key.objects.get(operation="inbox")
    processing.refresh_from_db()
    version = processing.version
    at_once([partial(run_again, key_id=message.pk, actor="olga", reason="To be sure.")] * 3)

    processing.refresh_from_db()
    assert (processing.status, processing.version) == ("succeeded", version)
    # The guard stands: a copy that comes again does nothing.
    assert Key.objects.filter(operation="inbox").count() == 1
    assert alarms() == []


def test_what_fails_when_it_is_run_again_leaves_nothing(
    lost: Key, processing: Payment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments.services.take_in", lambda event: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_again(key_id=lost.pk, actor="olga", reason="To be sure.")
    assert not Event.objects.filter(kind="run-again").exists()


def test_a_message_that_is_not_kept_cannot_be_run_again(lost: Key, shop: Shop) -> None:
    Key.objects.filter(pk=lost.pk).update(body=None, note="expired")
    with pytest.raises(NotNow, match="not kept"):
        run_again(key_id=lost.pk, actor="olga", reason="To be sure.")
    with pytest.raises(NotNow, match="not a message"):
        run_again(
            key_id=Key.objects.exclude(pk=lost.pk).latest("created_at").pk,
            actor="olga",
            reason="To be sure.",
        )


def test_staff_run_an_event_again_from_its_page_once(lost: Key, processing: Payment) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("olga"))
    page = client.get(f"/admin/idempotency/key/{lost.pk}/change/").content.decode()
    assert "Run the message again" in page
    assert "Event of the gateway: charge of 12.00 UAH succeeded" in page
    assert "Ask the gateway now" not in page
    address = f"/admin/idempotency/key/{lost.pk}/act/rerun/"
    form = re.findall(r'name="form" value="([^"]+)"', client.get(address).content.decode())[0]
    data = {"form": form, "reason": "The first one met a bug."}
    pages = [client.post(address, data, follow=True).content.decode() for _ in range(2)]

    assert "The message was run again" in pages[0]
    assert "had been sent before" in pages[1]
    assert Event.objects.filter(kind="run-again").count() == 1
    processing.refresh_from_db()
    assert processing.status == "succeeded"


def test_who_may_only_look_runs_nothing_again(lost: Key) -> None:
    call_command("idempotency_roles", verbosity=0)
    user = User.objects.create_user("support", is_staff=True)
    user.groups.add(Group.objects.get(name="Idempotency: support"))
    client = Client()
    client.force_login(user)
    address = f"/admin/idempotency/key/{lost.pk}/act/rerun/"
    assert client.get(address).status_code == 403
    assert client.post(address, {"reason": "To be sure."}).status_code == 403
    page = client.get(f"/admin/idempotency/key/{lost.pk}/change/").content.decode()
    assert "Run the message again" not in page


def test_a_refund_that_happened_after_all_and_no_longer_fits_is_raised(
    shop: Shop, fake: FakeGateway
) -> None:
    payment = Payment.objects.get(pk=shop.pay().json()["id"])
    path = f"/api/payments/{payment.pk}/refunds/"
    given_up = shop.post(path, {"amount": 1200})
    shop.client.post(f"{given_up['Location']}cancel/")
    abandoned = Refund.objects.get()
    shop.post(path, {"amount": 700})
    assert send(told(abandoned, "succeeded", gateway_id="re_late")).status_code == 200

    abandoned.refresh_from_db()
    assert abandoned.status == "abandoned"
    assert [alarm["gateway_reference"] for alarm in alarms()] == ["re_late"]


@pytest.mark.parametrize("keyed", [True, False])
def test_r39_told_while_a_refund_waits_for_its_next_run_it_is_not_made_again(
    shop: Shop, keyed: bool
) -> None:
    """A look-up had not found it, longer than the gateway had promised."""
    fake = FakeGateway(keyed=keyed, settling_time=0)
    with using(fake):
        payment = Payment.objects.get(pk=shop.pay().json()["id"])
        promised = shop.post(f"/api/payments/{payment.pk}/refunds/", {"amount": 1200})
        fake.next(Act.LOSE_ANSWER)
        runner.run()
        fake.hidden = True
        settle_unknown()
        assert Key.objects.get(deferred=True).due_at is not None
        made = fake.effects[1]
        event = told(Refund.objects.get(), "succeeded", gateway_id=made.id)
        assert send(event).status_code == 200

        cancelled = shop.client.post(f"{promised['Location']}cancel/")
        assert cancelled.status_code == 409
        runner.run()
        answer = shop.client.get(promised["Location"]).json()
        assert answer["result"]["gateway_reference"] == made.id
        assert len(fake.effects) == 2


def test_r39_a_refund_that_the_bank_sends_back_is_raised(shop: Shop, fake: FakeGateway) -> None:
    """It had succeeded: nothing is taken back in the books, but the customer has no money."""
    payment = Payment.objects.get(pk=shop.pay().json()["id"])
    shop.post(f"/api/payments/{payment.pk}/refunds/", {"amount": 1200})
    runner.run()
    refund = Refund.objects.get()
    assert refund.status == "succeeded"
    event = told(refund, "failed") | {"id": "evt_back"}
    for _ in range(2):
        assert send(event).status_code == 200

    refund.refresh_from_db()
    assert refund.status == "succeeded"
    assert [alarm["said"] for alarm in alarms()] == ["failed: failed"]


def test_r36_no_look_up_takes_back_what_the_gateway_has_told(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its list and its objects may lag behind its own events."""
    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1")
    (charge,) = fake.effects
    assert send(told(Payment.objects.get(), "succeeded", gateway_id=charge.id)).status_code == 200
    monkeypatch.setattr(fake, "retrieve_charge", lambda _: Absent())
    monkeypatch.setattr(fake, "look_up_charge", lambda _: Absent())
    settle_unknown()
    answer = shop.pay(key="k1")
    assert (answer.status_code, answer.json()["gateway_reference"]) == (201, charge.id)
    assert fake.effects == [charge]


@pytest.mark.parametrize("keyed", [True, False])
def test_r39_told_while_a_later_run_fails_nobody_hears_that_nothing_happened(
    shop: Shop, keyed: bool
) -> None:
    """The event is about an earlier run, and comes in the middle of one that is refused."""
    fake = FakeGateway(keyed=keyed, settling_time=0)
    with using(fake):
        fake.next(Act.LOSE_ANSWER)
        shop.pay(key="k1")
        fake.hidden = True
        settle_unknown()
        assert Key.objects.get().state == "released"
        (charge,) = fake.effects

        def tell_and_refuse(request: OutsideRequest) -> OutsideResult:
            event = told(Payment.objects.get(), "succeeded", gateway_id=charge.id)
            assert send(event).status_code == 200
            raise CallFailed("It was not sent.")

        fake.charge = tell_and_refuse  # type: ignore[method-assign]
        assert shop.pay(key="k1").status_code == 504
        settle_unknown()
        answer = shop.pay(key="k1")
    assert (answer.status_code, answer.json()["gateway_reference"]) == (201, charge.id)
    assert fake.effects == [charge]


# -- who may tell ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sending",
    [
        lambda event: send(event, secret="whsec_other"),
        lambda event: send(event, at=time.time() - 301),
        lambda event: send(event, at=time.time() + 320),
        lambda event: send(event, header="t=1,v1="),
        lambda event: send(event, header="v1=00"),
        lambda event: send(event, header="t=x,v1=é".encode().decode("latin-1")),
    ],
    ids=["other secret", "too old", "from the future", "empty", "no time", "nonsense"],
)
def test_f6_what_the_gateway_did_not_sign_lately_is_refused(
    processing: Payment, sending: Callable[[Any], Any]
) -> None:
    refused = sending(told(processing, "succeeded"))

    assert (refused.status_code, refused.json()["code"]) == (400, "signature-invalid")
    processing.refresh_from_db()
    assert processing.status == "processing"


def test_without_a_secret_every_event_is_refused(
    processing: Payment, settings: LazySettings
) -> None:
    settings.PAYMENTS = settings.PAYMENTS | {"WEBHOOK_SECRET": ""}
    assert send(told(processing, "succeeded"), secret="").status_code == 400


@pytest.mark.parametrize("hours", [-5, 5])
def test_the_databases_clock_says_how_old_an_event_is(
    processing: Payment, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    event, right = told(processing, "succeeded"), time.time()
    monkeypatch.setattr(time, "time", lambda: right + hours * 3600)
    assert send(event, at=right).status_code == 200
    assert send(event, at=right + hours * 3600).json()["code"] == "signature-invalid"


def test_an_event_of_another_kind_is_taken_and_changes_nothing(db: None) -> None:
    event = {"id": "evt_1", "data": {"object": {"object": "customer", "id": "cus_1"}}}
    assert send(event).status_code == 200


# -- asking again ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("succeeded", "status"), [(True, "succeeded"), (False, "declined")])
def test_a_processing_payment_is_finished_by_asking_again(
    processing: Payment, fake: FakeGateway, succeeded: bool, status: str
) -> None:
    Payment.objects.update(updated_at="2020-01-01T00:00Z")
    assert services.follow_up() == 0
    fake.settle(processing.gateway_reference or "", succeeded=succeeded)
    Payment.objects.update(updated_at="2020-01-01T00:00Z")
    assert services.follow_up() == 1

    processing.refresh_from_db()
    assert processing.status == status


@pytest.mark.parametrize("trouble", [None, CallFailed("500"), KeyError("amount")])
def test_what_stays_undecided_keeps_nobody_else_from_being_asked_about(
    shop: Shop, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch, trouble: Exception | None
) -> None:
    for order in range(3):
        shop.pay(order_id=str(order), source="pm_card_processing")
    first, _, last = Payment.objects.order_by("created_at")
    fake.settle(last.gateway_reference or "", succeeded=True)
    retrieve = fake.retrieve_charge

    def asked(gateway_id: str) -> Any:
        if trouble is not None and gateway_id == first.gateway_reference:
            raise trouble
        return retrieve(gateway_id)

    monkeypatch.setattr(fake, "retrieve_charge", asked)
    for _ in range(3):
        Payment.objects.update(updated_at=F("updated_at") - timedelta(minutes=1))
        services.follow_up(limit=1)
    last.refresh_from_db()
    assert last.status == "succeeded"


def test_one_undecided_row_is_asked_about_once_by_two_who_follow_up(
    processing: Payment, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    Payment.objects.update(updated_at="2020-01-01T00:00Z")
    retrieve, asked = fake.retrieve_charge, []

    def slow(gateway_id: str) -> Any:
        asked.append(gateway_id)
        assert services.follow_up() == 0
        return retrieve(gateway_id)

    monkeypatch.setattr(fake, "retrieve_charge", slow)
    services.follow_up()
    assert len(asked) == 1


def test_r43_an_answer_about_a_row_that_changed_meanwhile_is_dropped(
    processing: Payment, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version check: read, asked without a lock, written only if nobody else wrote."""
    fake.settle(processing.gateway_reference or "", succeeded=False)
    Payment.objects.update(updated_at="2020-01-01T00:00Z")
    retrieve = fake.retrieve_charge

    def and_be_overtaken(gateway_id: str) -> Any:
        send(told(processing, "succeeded"))
        return retrieve(gateway_id)

    monkeypatch.setattr(fake, "retrieve_charge", and_be_overtaken)
    assert services.follow_up() == 0
    processing.refresh_from_db()
    assert processing.status == "succeeded"


@pytest.mark.parametrize("reference", ["order-55", None, 5, [], {}, "\u0000"])
def test_f9_somebody_elses_reference_on_the_same_account_is_no_error(
    processing: Payment, reference: object
) -> None:
    event = told(processing, "succeeded", gateway_id="pi_of_another_system")
    event["data"]["object"]["metadata"] = {"reference": reference}
    assert send(event).status_code == 200


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("thing", "pi\u0000"),
        ("thing", "p" * 5000),
        ("thing", None),
        ("thing", {"id": "pi_1"}),
        ("object", ["payment_intent"]),
        ("amount", float("inf")),
        ("metadata", "text"),
        ("metadata", [1]),
    ],
)
def test_r39_what_is_signed_and_cannot_be_read_is_kept_and_raised(
    processing: Payment, place: str, value: object
) -> None:
    """A refusal would be repeated for days, and nobody here would know."""
    event = told(processing, "succeeded", event_id="evt_odd")
    event["data"]["object"]["id" if place == "thing" else place] = value
    body = json.dumps(event).encode()
    assert [send(body).status_code, send(body).status_code] == [200, 200]
    assert alarms() == [{"news": "unreadable", "about": "message evt_odd"}]
    kept = Key.objects.get(operation="inbox")
    assert (kept.key, bytes(kept.body or b"")) == ("evt_odd", body)
    assert kept.summary == "Event of the gateway that cannot be read (an alarm was raised)"
    processing.refresh_from_db()
    assert processing.status == "processing"
    with pytest.raises(NotNow, match="still cannot be read"):
        run_again(key_id=kept.id, actor="ann", reason="is it mended?")


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{}", b"no", b'{"id": 1, "data": {"object": 5}}', b"[" * 50_000 + b"]" * 50_000],
    ids=lambda body: str(body[:10]),
)
def test_r39_a_signed_message_without_an_id_is_known_by_its_bytes(db: None, body: bytes) -> None:
    assert [send(body).status_code, send(body).status_code] == [200, 200]
    (alarm,) = alarms()
    assert alarm["about"] == f"message sha256:{hashlib.sha256(body).hexdigest()}"
    assert Key.objects.get().operation == "inbox"


@pytest.mark.parametrize(
    "event_id", ["e" * 5000, "evt\u0000", 7, None, ["evt_1"], {"id": "evt_1"}], ids=str
)
def test_an_event_whose_id_cannot_be_kept_is_taken_in_once(
    processing: Payment, event_id: object
) -> None:
    event = told(processing, "succeeded") | {"id": event_id}
    assert [send(event).status_code, send(event).status_code] == [200, 200]
    processing.refresh_from_db()
    assert (processing.status, processing.version) == ("succeeded", 3)
    assert alarms() == []


def test_a_message_says_what_came_of_it(processing: Payment) -> None:
    other = told(processing, "succeeded", gateway_id="pi_2")
    stranger = told(processing, "succeeded", gateway_id="pi_3")
    stranger["data"]["object"]["metadata"] = {}
    events = {
        "now succeeded": told(processing, "succeeded"),
        "changed nothing: succeeded": told(processing, "processing"),
        "an alarm was raised": other,
        "an alarm was raised ": stranger,
        "nothing here is about it": told(processing, "requires_payment_method", gateway_id="pi_4"),
    }
    events["nothing here is about it"]["data"]["object"]["metadata"] = {}
    for said, event in events.items():
        assert send(event).status_code == 200
        assert Key.objects.get(key=event["id"]).summary.endswith(f"({said.strip()})")


def test_a_message_about_an_open_key_says_that_it_is_looked_up(
    shop: Shop, fake: FakeGateway
) -> None:
    fake.next(Act.LOSE_ANSWER)
    shop.pay()
    event = told(Payment.objects.get(), "succeeded", gateway_id="pi_1")
    send(event)
    assert Key.objects.get(key=event["id"]).summary.endswith(
        "(its key is open and is looked up now)"
    )
