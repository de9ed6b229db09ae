"""What the reconciler answers later is what the view would have answered, byte for byte (R36)."""

import re

import pytest

from idempotency.types import State
from payments.gateway.fake import Act, FakeGateway
from payments.models import Payment
from tests.integration.payments.conftest import Shop, settle_unknown

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


def test_a_person_who_saw_the_charge_settles_it_with_the_views_answer(
    shop: Shop, fake: FakeGateway
) -> None:
    from idempotency.models import Key
    from idempotency.reconciliation import settle_by_hand

    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1")
    fake.hidden = True
    Key.objects.update(lookups=1)
    report = settle_by_hand(
        key_id=Key.objects.get().id,
        happened=True,
        actor="ops",
        reason="Seen on the gateway's dashboard.",
        evidence={"reference": "pi_seen"},
    )

    assert report.state is State.COMPLETED
    answer = shop.pay(key="k1")
    assert (answer.status_code, answer.json()["status"]) == (201, "succeeded")
    assert answer.json()["gateway_reference"] == "pi_seen"
