"""The ways to be idempotent beside a key (R43), where payments needs them.

The inbox and the version check are in `test_webhooks`; a key is everywhere.
"""

import uuid
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from idempotency.ledger import Claim
from payments.gateway import Movement, Progress
from payments.models import Merchant, Payment
from payments.services import record_charge
from tests.integration.payments.test_constraints import payment as pending
from tests.integration.payments.test_races import at_once

ORDER: dict[str, Any] = {"order_id": "1", "amount": 1, "currency": "UAH", "source": "pm_1"}


@pytest.fixture
def merchant(transactional_db: None) -> Merchant:
    return Merchant.objects.create(name="m", slug="m")


def test_r43_insert_dedupe_the_constraint_decides_and_the_row_is_read(merchant: Merchant) -> None:
    for _ in range(10):
        claim = cast(Claim, SimpleNamespace(id=uuid.uuid4(), generation=1))
        make = partial(Payment.objects.made_once, claim=claim, merchant=merchant, **ORDER)
        made = at_once([make] * 4)

        assert len({row.pk for row, _ in made}) == 1
        assert [new for _, new in made].count(True) == 1
    assert Payment.objects.count() == 10


def test_another_life_of_a_key_makes_a_row_of_its_own(merchant: Merchant) -> None:
    key = uuid.uuid4()
    for generation in (1, 2):
        claim = cast(Claim, SimpleNamespace(id=key, generation=generation))
        _, new = Payment.objects.made_once(claim=claim, merchant=merchant, **ORDER)
        assert new


def test_r43_absolute_state_written_again_changes_nothing(merchant: Merchant) -> None:
    made = pending(merchant)
    charge = Movement(id="pi_1", status=Progress.SUCCEEDED, amount=100, currency="UAH")
    first = record_charge(payment=made, charge=charge)
    again = record_charge(payment=Payment.objects.get(), charge=charge)

    assert (again.status, again.version, again.settled_at) == ("succeeded", 2, first.settled_at)
