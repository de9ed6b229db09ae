"""What a stranger tests, by `manage.py test`."""

from django.contrib.auth.models import Group, User
from django.test import TestCase, TransactionTestCase
from rest_framework.test import APIClient


def order_twice() -> int:
    """Order twice under one key, and once otherwise; return how many orders there are."""
    client = APIClient()
    client.force_authenticate(User.objects.create_user("bob"))
    for body in ({}, {}, {"other": "1"}):
        client.post("/orders/", body, headers={"Idempotency-Key": "k1"})
    return Group.objects.count()


class InATransaction(TestCase):
    def test_one_order(self) -> None:
        assert order_twice() == 1


class Committed(TransactionTestCase):
    databases = "__all__"

    def test_one_order(self) -> None:
        assert order_twice() == 1

    def test_one_order_again(self) -> None:
        assert order_twice() == 1
