"""Refunds, payouts and receipts: promised by a request, done by a worker's run."""

import contextlib
from typing import Any

import pytest

from idempotency.exceptions import CallRejected, CallUnknown
from idempotency.operations import runner
from idempotency.types import OutsideRequest, OutsideResult
from payments.gateway.fake import Act, FakeGateway
from payments.models import Payment, Payout, Receipt, Refund
from tests.integration.payments.conftest import Shop, settle_unknown

pytestmark = pytest.mark.usefixtures("no_broker")


@pytest.fixture
def paid(shop: Shop, fake: FakeGateway) -> Payment:
    return Payment.objects.get(pk=shop.pay().json()["id"])


def refund(shop: Shop, payment: Payment, amount: int, *, key: str = "") -> Any:
    return shop.post(f"/api/payments/{payment.pk}/refunds/", {"amount": amount}, key=key)


def operation(shop: Shop, answer: Any) -> Any:
    return shop.client.get(answer["Location"]).json()


def work() -> None:
    while runner.run() is not None:
        pass


def test_a_refund_is_promised_done_and_replayed(
    shop: Shop, paid: Payment, fake: FakeGateway
) -> None:
    first = refund(shop, paid, 500, key="r1")
    assert first.status_code == 202
    assert int(first["Retry-After"]) >= 1
    assert not operation(shop, first)["done"]

    work()
    told = operation(shop, first)
    assert (told["done"], told["attempts"]) == (True, 1)
    assert told["result"]["status"] == "succeeded"
    assert refund(shop, paid, 500, key="r1").content == first.content
    assert [effect.amount for effect in fake.effects] == [1200, 500]
    shown = shop.client.get(paid.get_absolute_url()).json()
    assert (shown["status"], shown["amount_refunded"]) == ("succeeded", 500)


def test_r42_a_refund_counts_from_its_promise_on(
    shop: Shop, paid: Payment, fake: FakeGateway
) -> None:
    assert refund(shop, paid, 700).status_code == 202
    too_much = refund(shop, paid, 501, key="r2")
    assert (too_much.status_code, too_much.json()["code"]) == (409, "refund-too-large")
    assert refund(shop, paid, 501, key="r2").content == too_much.content
    assert refund(shop, paid, 500).status_code == 202

    work()
    assert [effect.amount for effect in fake.effects] == [1200, 700, 500]
    assert shop.client.get(paid.get_absolute_url()).json()["status"] == "refunded"


def test_e8_an_unknown_refund_counts_as_spent(shop: Shop, paid: Payment, fake: FakeGateway) -> None:
    refund(shop, paid, 700)
    fake.next(Act.LOSE_ANSWER)
    work()

    listed = shop.client.get(f"{paid.get_absolute_url()}refunds/").json()
    assert [row["status"] for row in listed] == ["unknown"]
    assert refund(shop, paid, 501).status_code == 409


def test_e9_two_equal_refunds_with_two_keys_are_two(
    shop: Shop, paid: Payment, fake: FakeGateway
) -> None:
    refund(shop, paid, 100)
    refund(shop, paid, 100)
    work()

    assert [effect.amount for effect in fake.effects] == [1200, 100, 100]


def test_what_was_not_charged_is_not_refunded(shop: Shop, fake: FakeGateway) -> None:
    shop.pay(source="pm_card_chargeDeclined")
    refused = refund(shop, Payment.objects.get(), 100)

    assert (refused.status_code, refused.json()["code"]) == (409, "not-refundable")


def test_another_merchants_payment_is_not_there(shop: Shop, rival: Shop, paid: Payment) -> None:
    assert refund(rival, paid, 100).status_code == 404


@pytest.mark.parametrize("told", [True, False], ids=["answered", "looked up"])
def test_a_refused_refund_frees_its_amount(
    shop: Shop, paid: Payment, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    answer = refund(shop, paid, 1200)
    # The money is gone at the gateway already, by another hand.
    fake.next(Act.DECLINE)
    if not told:
        lose_the_answer(fake, monkeypatch)
    work()
    settle_unknown()

    ended = operation(shop, answer)
    assert (ended["done"], ended["error"]["code"]) == (True, "refund-refused")
    assert Refund.objects.get().status == "refused"
    assert refund(shop, paid, 1200).status_code == 202


def test_a_refund_given_up_frees_its_amount(shop: Shop, paid: Payment, fake: FakeGateway) -> None:
    answer = refund(shop, paid, 1200)
    cancelled = shop.client.post(f"{answer['Location']}cancel/")
    assert cancelled.status_code == 200

    assert Refund.objects.get().status == "abandoned"
    assert operation(shop, answer)["error"]["code"] == "cancelled"
    paid.refresh_from_db()
    assert paid.left == 1200


# -- payouts -----------------------------------------------------------------------------------------------------------

PAYOUT = {"amount": 900, "currency": "UAH", "destination": "acct_1a"}


def test_a_payout_is_made_once_in_two_steps(shop: Shop, fake: FakeGateway) -> None:
    answer = shop.post("/api/payouts/", PAYOUT)
    work()

    told = operation(shop, answer)
    assert told["result"]["status"] == "succeeded"
    assert [effect.amount for effect in fake.effects] == [900]
    assert len({send.downstream_key for send in fake.sends}) == 2
    assert Payout.objects.get().recipient_reference


def test_a_payout_goes_on_where_it_stopped(shop: Shop, fake: FakeGateway) -> None:
    """A step that is applied returns its recorded result: the recipient is made once."""
    answer = shop.post("/api/payouts/", PAYOUT)
    fake.next(Act.APPLY, Act.NOT_SENT)
    runner.run()
    assert not operation(shop, answer)["done"]
    settle_unknown()
    work()

    assert operation(shop, answer)["result"]["status"] == "succeeded"
    assert [thing.kind for thing in fake.things] == ["recipient", "payout"]


def test_a_payout_to_nobody_is_refused(shop: Shop, fake: FakeGateway) -> None:
    answer = shop.post("/api/payouts/", PAYOUT | {"destination": "acct_invalid"})
    work()

    assert operation(shop, answer)["error"]["code"] == "payout-refused"
    assert Payout.objects.get().status == "refused"
    assert fake.effects == []


# -- receipts ----------------------------------------------------------------------------------------------------------


def receipt(shop: Shop, payment: Payment, text: str, *, key: str | None = "") -> Any:
    body = {"payment": str(payment.pk), "email": "a@example.com", "text": text}
    return shop.post("/api/receipts/", body, key=key)


def test_a_receipt_is_kept_trimmed_and_compared_as_sent(shop: Shop, paid: Payment) -> None:
    first = receipt(shop, paid, "hello", key="q1")
    other = receipt(shop, paid, " hello ", key="q1")
    assert (first.status_code, other.status_code) == (202, 422)

    spaced = receipt(shop, paid, " hello ")
    work()
    assert operation(shop, spaced)["result"]["text"] == "hello"
    assert {kept.text for kept in Receipt.objects.all()} == {"hello"}
    assert {kept.status for kept in Receipt.objects.all()} == {"issued"}


def test_receipts_without_a_key_are_one_each(shop: Shop, paid: Payment) -> None:
    first, second = (receipt(shop, paid, "hello", key=None) for _ in range(2))

    assert first["Location"] != second["Location"]
    assert first["Idempotency-Key"]
    assert Receipt.objects.count() == 2


def lose_the_answer(fake: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next refund end at the gateway as it would, and tell nobody."""
    refund = fake.refund

    def lost(request: OutsideRequest) -> OutsideResult:
        monkeypatch.setattr(fake, "refund", refund)
        with contextlib.suppress(CallRejected):
            refund(request)
        raise CallUnknown("No answer.")

    monkeypatch.setattr(fake, "refund", lost)
