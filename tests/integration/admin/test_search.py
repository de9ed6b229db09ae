"""Whatever a caller reads out from their own records finds the key, exactly."""

import time

import pytest
from django.urls import reverse

from idempotency.admin.search import keys_for
from idempotency.types import Ending, State
from tests.integration.admin.conftest import Login
from tests.support.factories import make_key, make_step, make_waiting

KEYS = reverse("admin:idempotency_key_changelist")


@pytest.mark.parametrize(
    "term",
    [
        "client-key-1",
        '"client-key-1"',
        " client-key-1 ",
        "order-881",
        "0198c0de-pay",
        "/api/payments/0198c0de-pay/",
        "pi_gateway",
        "down-key",
        "req-of-caller",
    ],
)
def test_a_key_is_found_by(login: Login, term: str) -> None:
    key = make_key(
        state=State.COMPLETED,
        key="client-key-1",
        reference="order-881",
        resource="/api/payments/0198c0de-pay/",
        request_id="req-of-caller",
    )
    make_step(key, ending=Ending.APPLIED, reference="pi_gateway", downstream_key="down-key")
    other = make_key(state=State.COMPLETED, resource="/api/payments/0198c0de-other/")
    page = login("support").get(KEYS, {"q": term}).content.decode()
    assert str(key.pk) in page
    assert str(other.pk) not in page


def test_a_key_is_found_by_what_the_api_told_the_caller(login: Login) -> None:
    key, work = make_waiting()
    client = login("support")
    for ref in (key.pk, work.pk):
        assert str(key.pk) in client.get(KEYS, {"q": str(ref)}).content.decode()


@pytest.mark.parametrize("name", ['"quoted"', 'open"', '"', "#881", "a/b/", "%_\\'", "=1+1"])
def test_a_key_is_found_by_whatever_it_is_made_of(login: Login, name: str) -> None:
    key = make_key(key=name)
    other = make_key(key="another")
    page = login("support").get(KEYS, {"q": name}).content.decode()
    assert str(key.pk) in page
    assert str(other.pk) not in page


def test_both_keys_of_an_order_are_found(login: Login) -> None:
    keys = [make_key(state=State.COMPLETED, reference="881") for _ in range(2)]
    page = login("support").get(KEYS, {"q": "881"}).content.decode()
    assert all(str(key.pk) in page for key in keys)


def test_part_of_a_name_finds_nothing(login: Login) -> None:
    make_key(key="client-key-1", reference="order-881")
    page = login("support").get(KEYS, {"q": "order"}).content.decode()
    assert "0 idempotency keys" in page


def test_work_is_found_by_the_same_names(login: Login) -> None:
    _, work = make_waiting(reference="order-9")
    page = login("support").get(reverse("admin:idempotency_operation_changelist"), {"q": "order-9"})
    assert str(work.pk) in page.content.decode()


@pytest.mark.django_db
def test_a_long_text_that_somebody_pasted_holds_nobody_up() -> None:
    began = time.process_time()
    assert keys_for("a" * 30_000 + "/b") == []
    # By a pattern that went back at every letter it took twenty.
    assert time.process_time() - began < 2
