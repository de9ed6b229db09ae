"""Callers at the same time, in real threads on the real database: many rounds of each."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pytest
from django.db import connections
from django.db.models import Sum

from payments.gateway.fake import FakeGateway
from payments.models import Account, Payment, Refund, Transfer
from tests.integration.payments.conftest import Shop

T = TypeVar("T")

pytestmark = [pytest.mark.usefixtures("no_broker"), pytest.mark.slow]


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make all the calls at the same moment, each in a thread of its own."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], T]) -> T:
        barrier.wait(10)
        try:
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(one, calls))


def codes(answers: Sequence[Any]) -> list[int]:
    return sorted(answer.status_code for answer in answers)


def refund(shop: Shop, payment: Payment, amount: int) -> Any:
    return shop.another().post(f"/api/payments/{payment.pk}/refunds/", {"amount": amount})


def test_r42_two_refunds_of_60_on_100(shop: Shop, fake: FakeGateway) -> None:
    for _ in range(15):
        payment = Payment.objects.get(pk=shop.pay(amount=100).json()["id"])
        answers = at_once([partial(refund, shop, payment, 60)] * 2)

        assert codes(answers) == [202, 409]
        payment.refresh_from_db()
        assert (payment.refunded_reserved, payment.left) == (60, 40)


def test_r42_twenty_refunds_of_10_on_100(shop: Shop, fake: FakeGateway) -> None:
    for _ in range(3):
        payment = Payment.objects.get(pk=shop.pay(amount=100).json()["id"])
        answers = at_once([partial(refund, shop, payment, 10)] * 20)

        assert codes(answers) == [202] * 10 + [409] * 10
        spent = Refund.objects.filter(payment=payment).aggregate(Sum("amount"))
        assert spent["amount__sum"] == 100


def test_twins_of_one_payment_charge_once(shop: Shop, fake: FakeGateway) -> None:
    for number in range(15):
        answers = at_once([partial(shop.another().pay, key=f"k{number}") for _ in range(4)])

        assert set(codes(answers)) <= {201, 409}
        assert 201 in codes(answers)
        assert len(fake.effects) == number + 1
    assert Payment.objects.count() == 15


def test_opposite_transfers_neither_make_nor_lose_money(shop: Shop) -> None:
    main, savings = Account.objects.filter(merchant=shop.merchant).order_by("name")
    there = {"from_account": str(main.pk), "to_account": str(savings.pk), "amount": 3_000}
    back = {"from_account": str(savings.pk), "to_account": str(main.pk), "amount": 3_000}
    for _ in range(10):
        answers = at_once(
            [partial(shop.another().post, "/api/transfers/", body) for body in [there, back] * 4]
        )

        assert set(codes(answers)) <= {201, 409}
    assert Account.objects.aggregate(Sum("balance"))["balance__sum"] == 20_000


def test_the_last_money_is_moved_once(shop: Shop) -> None:
    main, savings = Account.objects.filter(merchant=shop.merchant).order_by("name")
    body = {"from_account": str(main.pk), "to_account": str(savings.pk), "amount": 10_000}
    answers = at_once([partial(shop.another().post, "/api/transfers/", body) for _ in range(6)])

    assert codes(answers) == [201] + [409] * 5
    assert Transfer.objects.count() == 1
