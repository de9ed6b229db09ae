"""Events to a merchant's endpoint: what arrives, in which form, and what happens when it does not."""

import base64
import hmac
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from idempotency.clock import SYSTEM
from idempotency.models import Key
from payments import completion
from payments.completion import signing
from payments.gateway.fake import FakeGateway
from payments.models import Delivery, DeliveryAttempt, Endpoint, Payment
from tests.integration.completion.conftest import (
    Hearing,
    Receiver,
    after_reading,
    delivery,
    listen,
    work,
    work_now,
)
from tests.integration.payments.conftest import Shop, settle_unknown
from tests.integration.payments.test_races import at_once
from tests.recipes.receive import verify
from tests.support.faultserver import (
    Exchange,
    Fault,
    FaultServer,
    drip,
    stall_before_answer,
    stall_in_head,
)


def test_a_payment_is_announced_signed_and_delivered_once(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    paid = shop.pay(key="k1").json()
    work()

    [(headers, body)] = receiver.arrived
    assert verify(hearing.secret, headers, body) == delivery().webhook_id
    told = json.loads(body)
    assert told["type"] == "payment.succeeded"
    assert told["data"]["payment"] == paid
    assert told["data"]["idempotency_key"] == "k1"
    assert told["data"]["operation"] is None
    assert headers["content-type"] == "application/json"
    happened = Payment.objects.get().updated_at
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["timestamp"])
    assert abs(datetime.fromisoformat(told["timestamp"]) - happened) < timedelta(seconds=1)
    assert delivery().status == "delivered"
    assert shop.pay(key="k1").json() == paid
    work()
    assert len(receiver.arrived) == 1, "a replay settles nothing"


@pytest.fixture
def wrong_clock() -> Iterator[None]:
    """Let this host's wall clock be five hours behind."""
    right = SYSTEM.wall
    object.__setattr__(SYSTEM, "wall", lambda: right() - 5 * 3600)
    yield
    object.__setattr__(SYSTEM, "wall", right)


def test_a_sender_whose_clock_is_wrong_is_believed_all_the_same(
    shop: Shop, hearing: Hearing, receiver: Receiver, wrong_clock: None
) -> None:
    """Receivers refuse what was signed more than five minutes ago, or ahead."""
    shop.pay()
    work()
    [(headers, body)] = receiver.arrived
    assert verify(hearing.secret, headers, body) == delivery().webhook_id
    told = datetime.fromisoformat(json.loads(body)["timestamp"])
    assert abs(told - Payment.objects.get().updated_at) < timedelta(seconds=1)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the specification and of its reference implementations."""
    assert (
        signing.headers(
            webhook_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
            at=1614265330,
            body=b'{"test": 2432232314}',
            keys=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        )["webhook-signature"]
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_a_failure_is_repeated_under_the_same_id_with_a_new_signature(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    receiver.script = [500, (503, "Retry-After: 30\r\n"), 204]
    shop.pay()
    work()
    waits = Key.objects.get(operation=completion.OPERATION)
    assert waits.state == "in_progress"
    assert hearing.row.failures == 1

    work_now()
    soon, late = (Now() + timedelta(seconds=seconds) for seconds in (25, 46))
    waiting = Key.objects.filter(pk=waits.pk, due_at__gt=soon, due_at__lt=late)
    assert waiting.exists(), "Retry-After is not shortened"
    work_now()

    assert len(set(receiver.ids)) == 1
    assert len({body for _, body in receiver.arrived}) == 1
    for headers, body in receiver.arrived:
        verify(hearing.secret, headers, body)
    happened = datetime.fromisoformat(json.loads(body)["timestamp"])
    assert happened < DeliveryAttempt.objects.earliest("at").at, "not the time of a try"
    assert [a.status for a in DeliveryAttempt.objects.all()] == [500, 503, 204]
    assert delivery().status == "delivered"
    assert (hearing.row.failures, hearing.row.failing_since) == (0, None)


@pytest.mark.parametrize("fault", [stall_before_answer, stall_in_head], ids=lambda f: f.__name__)
def test_a_receiver_that_does_not_answer_in_time_has_not_answered(
    shop: Shop, hearing: Hearing, receiver: Receiver, fault: Fault, settings: LazySettings
) -> None:
    settings.PAYMENTS = settings.PAYMENTS | {"ENDPOINT_TIMEOUT": 0.3}

    receiver.script = [after_reading(fault), 204]
    shop.pay()
    began = time.monotonic()
    work()
    assert time.monotonic() - began < 8

    [attempt] = DeliveryAttempt.objects.all()
    assert (attempt.status, "imeout" in attempt.error) == (None, True), attempt.error
    # It may have arrived. The receiver knows it by its id, so nobody has to look.
    assert Key.objects.get(operation=completion.OPERATION).state == "in_progress"
    work_now()
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1


def test_an_answer_is_not_read_beyond_its_status(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    receiver.script = [after_reading(drip)]
    shop.pay()
    work()
    assert delivery().status == "delivered"


def test_a_redirect_is_not_followed(
    shop: Shop, hearing: Hearing, receiver: Receiver, server: FaultServer
) -> None:
    receiver.script = [(307, f"Location: {server.url}/elsewhere\r\n")]
    shop.pay()
    work()

    assert len(receiver.arrived) == 1
    assert [a.status for a in DeliveryAttempt.objects.all()] == [307]
    assert delivery().status == "waiting"


def test_410_ends_it_and_switches_the_endpoint_off(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    receiver.script = [410]
    shop.pay()
    shop.pay()
    work()

    assert len(receiver.arrived) == 1
    assert (hearing.row.status, hearing.row.disabled_because) == (
        "disabled",
        "it answered 410 Gone",
    )
    assert sorted(Delivery.objects.values_list("status", "ending")) == [
        ("failed", "gone"),
        ("failed", "the endpoint is disabled"),
    ]
    shop.pay()
    assert Delivery.objects.count() == 2, "nothing is announced where nobody listens"


def test_days_of_failure_switch_the_endpoint_off(
    shop: Shop, hearing: Hearing, receiver: Receiver, settings: LazySettings
) -> None:
    receiver.script = [500]
    shop.pay()
    work()
    Endpoint.objects.update(failing_since=Now() - timedelta(days=6))
    work_now()
    assert (hearing.row.status, hearing.row.disabled_because) == (
        "disabled",
        "it failed for too long",
    )

    changed = shop.client.patch(hearing.path, {"enabled": True}, format="json").json()
    assert (changed["enabled"], changed["failing_since"]) == (True, None)


def test_a_delivery_is_given_up_after_its_days_and_can_be_sent_again(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    receiver.script = [500, 204]
    shop.pay()
    work()
    Delivery.objects.update(queued_at=Now() - timedelta(days=4))
    work_now()
    given_up = delivery()
    assert (given_up.status, given_up.ending) == ("failed", "given up")
    assert len(receiver.arrived) == 1

    assert completion.send_again(given_up)
    assert not completion.send_again(given_up), "it is on its way"
    work()
    assert delivery().status == "delivered"
    assert len(set(receiver.ids)) == 1, "the same event, so the same id"


def test_an_endpoint_that_keeps_failing_holds_up_nobody(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    receiver.script = [500]
    for _ in range(9):
        shop.pay()
    work()

    assert len(receiver.arrived) == 5, "then it rests"
    assert Payment.objects.filter(status="succeeded").count() == 9
    resting = Delivery.objects.filter(attempts=None)
    assert resting.count() == 4
    works = Key.objects.filter(work__id__in=resting.values("operation_id"))
    assert {attempts for (attempts,) in works.values_list("work__attempts")} == {0}


def test_while_a_secret_is_replaced_both_sign(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    new = shop.client.post(f"{hearing.path}secrets/").json()["secret"]
    shop.pay()
    work()
    [(headers, body)] = receiver.arrived
    assert verify(new, headers, body) == verify(hearing.secret, headers, body)

    hearing.row.secrets.filter(expires_at__isnull=False).update(expires_at=Now())
    shop.pay()
    work()
    headers, body = receiver.arrived[-1]
    verify(new, headers, body)
    with pytest.raises(ValueError, match="not signed"):
        verify(hearing.secret, headers, body)


def test_another_address_begins_with_a_clean_record(
    shop: Shop, hearing: Hearing, server: FaultServer, receiver: Receiver
) -> None:
    """By what the old one did, its first failure switched it off, and nothing was sent for minutes."""
    receiver.script = [500]
    Endpoint.objects.update(failing_since=Now() - timedelta(days=6), failures=9, failed_at=Now())
    same = shop.client.patch(hearing.path, {"url": hearing.row.url}, format="json")
    assert (same.status_code, hearing.row.failures) == (200, 9)

    shop.client.patch(hearing.path, {"url": f"{server.url}/moved"}, format="json")
    shop.pay()
    work()
    assert len(receiver.arrived) == 1
    assert (hearing.row.status, hearing.row.failures) == ("enabled", 1)


def test_what_an_address_says_while_another_replaces_it_counts_for_neither(
    shop: Shop, hearing: Hearing, server: FaultServer, receiver: Receiver
) -> None:
    """The old one is taken down while a try is on its way there: its 410 switched the new one off."""

    def replaced(exchange: Exchange) -> None:
        changed = shop.another().client.patch(
            hearing.path, {"url": f"{server.url}/new"}, format="json"
        )
        connection.close()
        exchange.answer(b"", status=f"{410 if changed.status_code == 200 else 500} Status")

    receiver.script = [replaced, 204]
    shop.pay()
    work()
    assert (hearing.row.status, hearing.row.failures) == ("enabled", 0)
    shop.pay()
    work()
    assert len(receiver.arrived) == 2


def test_of_secrets_made_at_once_one_stays_without_an_end(shop: Shop, hearing: Hearing) -> None:
    made = at_once([partial(shop.another().client.post, f"{hearing.path}secrets/")] * 6)
    assert [answer.status_code for answer in made] == [201] * 6
    newest = hearing.row.secrets.get(expires_at=None)
    assert newest == hearing.row.secrets.latest("pk")


def test_of_many_secrets_the_last_ones_sign(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    """Each signature is a part of a header, of which servers take 8 KiB."""
    made = [shop.client.post(f"{hearing.path}secrets/").json()["secret"] for _ in range(20)]
    shop.pay()
    work()
    [(headers, body)] = receiver.arrived
    assert len(headers["webhook-signature"].split()) == 5
    for secret in made[-5:]:
        verify(secret, headers, body)


@pytest.mark.parametrize("broken", ["body", "id", "old", "secret"])
def test_the_recipe_refuses_what_is_not_ours(
    shop: Shop, hearing: Hearing, receiver: Receiver, broken: str
) -> None:
    shop.pay()
    work()
    [(headers, body)] = receiver.arrived
    secret = hearing.secret
    if broken == "body":
        body += b" "
    elif broken == "id":
        headers["webhook-id"] += "0"
    elif broken == "old":
        key = base64.b64decode(secret.removeprefix("whsec_"))
        stamp = headers["webhook-timestamp"] = str(int(time.time()) - 301)
        signed = hmac.digest(key, f"{headers['webhook-id']}.{stamp}.".encode() + body, "sha256")
        headers["webhook-signature"] = "v1," + base64.b64encode(signed).decode()
    else:
        secret = "whsec_" + base64.b64encode(b"0" * 32).decode()
    with pytest.raises(ValueError, match=r"replay|signed"):
        verify(secret, headers, body)


def test_what_has_arrived_is_written_down_whatever_came_since(
    shop: Shop, hearing: Hearing, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settlement after the answer fails; before the next look the merchant switches the endpoint off."""

    def fails(*_: object) -> None:
        raise OperationalError("the server went away")

    shop.pay()
    with monkeypatch.context() as broken:
        broken.setattr("payments.completion.delivering._end", fails)
        work()
    assert delivery().status == "waiting"
    shop.client.patch(hearing.path, {"enabled": False}, format="json")
    settle_unknown()
    work_now()

    assert delivery().status == "delivered"
    assert len(receiver.arrived) == 1
    assert not Key.objects.exclude(state="completed").exists()


def test_a_ping_arrives(shop: Shop, hearing: Hearing, receiver: Receiver) -> None:
    answer = shop.client.post(f"{hearing.path}ping/")
    assert answer.status_code == 202
    work()

    [(headers, body)] = receiver.arrived
    assert json.loads(body)["type"] == "endpoint.ping"
    assert headers["webhook-id"] == answer.json()["webhook_id"]
    [shown] = shop.client.get(f"{hearing.path}deliveries/").json()["results"]
    assert (shown["status"], [a["status"] for a in shown["attempts"]]) == ("delivered", [204])


def test_each_endpoint_is_told_of_what_it_asked_for(
    shop: Shop, hearing: Hearing, server: FaultServer, receiver: Receiver
) -> None:
    listen(shop, f"{server.url}/declines", events=["payment.declined"])
    shop.pay()
    shop.pay(source="pm_card_chargeDeclined")
    work()

    told = {(d.endpoint.url.rpartition("/")[2], d.event) for d in Delivery.objects.all()}
    assert told == {
        ("events", "payment.succeeded"),
        ("events", "payment.declined"),
        ("declines", "payment.declined"),
    }
    assert len(receiver.arrived) == 3


def test_what_has_ended_long_ago_is_forgotten(shop: Shop, hearing: Hearing) -> None:
    shop.pay()
    work()
    assert completion.forget() == 0
    Delivery.objects.update(ended_at=Now() - timedelta(days=31))
    shop.pay()

    assert completion.forget(batch=1) == 1
    assert delivery().status == "waiting"
    assert DeliveryAttempt.objects.count() == 0


def test_what_is_sent_again_while_it_would_be_forgotten_stays(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    shop.pay()
    work()
    Delivery.objects.update(ended_at=Now() - timedelta(days=31))

    def forget() -> int:
        try:
            return completion.forget()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert completion.send_again(delivery())
        assert pool.submit(forget).result(10) == 0
    work()
    assert len(receiver.arrived) == 2


def test_secrets_that_this_process_cannot_read_are_waited_for(
    shop: Shop,
    server: FaultServer,
    fake: FakeGateway,
    no_broker: None,
    receiver: Receiver,
    settings: LazySettings,
) -> None:
    """A worker that has not got the new keys yet: nothing was sent, and nothing is unknown."""
    theirs, ours = (Fernet.generate_key().decode() for _ in range(2))
    settings.IDEMPOTENCY = settings.IDEMPOTENCY | {"ENCRYPTION_KEYS": [theirs]}
    listen(shop, f"{server.url}/events")
    settings.IDEMPOTENCY = settings.IDEMPOTENCY | {"ENCRYPTION_KEYS": [ours]}
    shop.pay()
    for _ in range(3):
        work_now()
    waits = Key.objects.get(operation=completion.OPERATION)
    assert (waits.state, waits.work.attempts) == ("in_progress", 0)
    assert receiver.arrived == []

    settings.IDEMPOTENCY = settings.IDEMPOTENCY | {"ENCRYPTION_KEYS": [ours, theirs]}
    work_now()
    assert len(receiver.arrived) == 1
