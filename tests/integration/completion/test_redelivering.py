"""An event is sent once more because its merchant asks for it: once for each key, under the same webhook-id."""

import json
import uuid
from functools import partial
from typing import Any

import pytest

from payments.models import Delivery
from tests.integration.completion.conftest import Hearing, Receiver, delivery, listen, work
from tests.integration.payments.conftest import Shop, make_shop
from tests.integration.payments.test_races import at_once


def address(hearing: Hearing, webhook_id: str = "") -> str:
    return f"{hearing.path}deliveries/{webhook_id or delivery().webhook_id}/"


def ask(shop: Shop, where: str, key: str = "again-1") -> Any:
    return shop.client.post(f"{where}redeliver/", headers={"Idempotency-Key": key})


@pytest.fixture
def sent(hearing: Hearing, shop: Shop, receiver: Receiver) -> str:
    """The address of a delivery that has arrived."""
    shop.pay()
    work()
    assert len(receiver.arrived) == 1
    return address(hearing)


def test_what_has_arrived_is_sent_once_more_as_it_was(
    shop: Shop, sent: str, receiver: Receiver
) -> None:
    answer = ask(shop, sent)
    assert (answer.status_code, answer["Location"]) == (202, sent)
    assert (answer.json()["status"], answer.json()["ended_at"]) == ("waiting", None)
    work()
    (first, body), (second, again) = receiver.arrived
    assert second["webhook-id"] == first["webhook-id"]
    assert again == body
    shown = shop.client.get(sent).json()
    assert shown["status"] == "delivered"
    assert shown["about"] == json.loads(body)["data"]["payment"]["id"]
    assert [one["status"] for one in shown["attempts"]] == [204, 204]


def test_a_repeat_under_the_same_key_sends_nothing_more(
    shop: Shop, sent: str, receiver: Receiver
) -> None:
    first = ask(shop, sent)
    work()
    second = ask(shop, sent)
    work()
    assert second["Idempotent-Replayed"] == "true"
    assert second.content == first.content
    assert len(receiver.arrived) == 2


def test_without_a_key_each_request_sends_it(shop: Shop, sent: str, receiver: Receiver) -> None:
    for _ in range(2):
        answer = shop.client.post(f"{sent}redeliver/")
        assert (answer.status_code, bool(answer["Idempotency-Key"])) == (202, True)
        work()
    assert len(receiver.arrived) == 3


def test_what_was_given_up_is_sent_once_the_endpoint_is_back(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    receiver.script = [410, 204]
    shop.pay()
    work()
    assert delivery().status == Delivery.FAILED
    refused = ask(shop, address(hearing))
    assert (refused.status_code, refused.json()["code"]) == (409, "endpoint-disabled")
    shop.client.patch(hearing.path, {"enabled": True}, format="json")
    assert ask(shop, address(hearing), "again-2").status_code == 202
    work()
    assert delivery().status == Delivery.DELIVERED


def test_what_is_on_its_way_is_not_sent_a_second_time(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    shop.pay()
    refused = ask(shop, address(hearing))
    assert (refused.status_code, refused.json()["code"]) == (409, "delivery-waiting")
    work()
    assert len(receiver.arrived) == 1


def test_of_many_who_ask_at_once_one_is_promised(shop: Shop, sent: str, receiver: Receiver) -> None:
    answers = at_once([partial(ask, shop.another(), sent, f"race-{n}") for n in range(6)])
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 5
    work()
    assert len(receiver.arrived) == 2


def test_nobody_else_sends_or_reads_it(shop: Shop, sent: str, hearing: Hearing) -> None:
    webhook_id = delivery().webhook_id
    other = listen(shop, "http://127.0.0.1:9/other")
    for who, where in (
        (make_shop("other"), sent),
        (shop, address(other, webhook_id)),
        (shop, address(hearing, f"msg_{uuid.uuid4().hex}")),
        (shop, address(hearing, "msg_1")),
    ):
        assert who.client.get(where).status_code == 404
        assert ask(who, where, uuid.uuid4().hex).status_code == 404
    assert delivery().status == Delivery.DELIVERED
