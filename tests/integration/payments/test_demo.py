"""`manage.py payments_demo`: what a newcomer tries the product with."""

import pytest
from django.conf import LazySettings
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from payments.models import Account, Merchant


@pytest.fixture
def demo(db: None, settings: LazySettings) -> None:
    settings.DEBUG = True
    call_command("payments_demo", verbosity=0)


def test_it_makes_each_thing_once(demo: None) -> None:
    Account.objects.update(balance=5)
    call_command("payments_demo", verbosity=0)

    assert Merchant.objects.count() == 2
    assert [account.balance for account in Account.objects.all()] == [5] * 4
    assert set(Token.objects.values_list("key", flat=True)) == {
        "demo-merchant-a",
        "demo-merchant-b",
    }


@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_tokens_open_the_api(demo: None, letter: str) -> None:
    client = APIClient(headers={"Authorization": f"Token demo-merchant-{letter}"})
    accounts = client.get("/api/accounts/").json()["results"]

    assert [account["balance"] > 0 for account in accounts] == [True, True]
    assert len({account["currency"] for account in accounts}) == 1


def test_the_logins_of_the_console_have_their_rights(demo: None) -> None:
    assert all(authenticate(username=name, password=name) for name in ("admin", "support", "ops"))
    support, ops = (User.objects.get(username=name) for name in ("support", "ops"))

    assert User.objects.get(username="admin").is_superuser
    assert support.is_staff
    assert support.has_perms(["idempotency.view_key", "payments.view_payment"])
    assert not any(
        support.has_perm(f"idempotency.{codename}")
        for codename in ("settle_key", "view_payload", "retry_operation", "lookup_key")
    )
    assert ops.has_perms(
        ["idempotency.view_key", "idempotency.settle_key", "payments.operate_payments"]
    )
    assert not ops.has_perm("auth.change_user")


def test_it_refuses_outside_debug(db: None, settings: LazySettings) -> None:
    settings.DEBUG = False
    with pytest.raises(CommandError, match="DEBUG"):
        call_command("payments_demo")
    assert not User.objects.exists()
