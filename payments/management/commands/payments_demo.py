"""`manage.py payments_demo`: the demo merchants, their accounts and tokens, and the console's logins."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from rest_framework.authtoken.models import Token

from idempotency.management.base import DatabaseCommand
from payments.models import Account, ApiUser, Merchant

MERCHANTS = {"a": ("Merchant A", "UAH"), "b": ("Merchant B", "EUR")}
BALANCE = 1_000_000

SUPPORT, OPERATIONS = "Idempotency: support", "Idempotency: operations"
"""Two of the groups that `idempotency_roles` makes."""


class Command(DatabaseCommand):
    """Make what is missing; change nothing that is there."""

    help = "Create the demo merchants, API users, accounts and logins (only in DEBUG)."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it in one transaction.

        Raises:
            CommandError: DEBUG is off; the tokens and passwords are public.
        """
        if not settings.DEBUG:
            raise CommandError("The demo accounts are public; they are made only with DEBUG on.")
        with transaction.atomic():
            for letter, (name, currency) in MERCHANTS.items():
                _merchant(letter, name, currency)
            call_command("idempotency_roles", verbosity=0)
            _login("admin", is_superuser=True)
            _login("support", group=SUPPORT, permissions=_viewing())
            _login("ops", group=OPERATIONS, permissions=[*_viewing(), *_operating()])
        self.stdout.write("Demo accounts are there: demo-merchant-a, demo-merchant-b (tokens).")


def _merchant(letter: str, name: str, currency: str) -> None:
    merchant, _ = Merchant.objects.get_or_create(slug=f"merchant-{letter}", defaults={"name": name})
    user, new = get_user_model().objects.get_or_create(username=f"merchant-{letter}")
    if new:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    ApiUser.objects.get_or_create(user=user, defaults={"merchant": merchant})
    Token.objects.get_or_create(key=f"demo-merchant-{letter}", defaults={"user": user})
    for account in ("main", "savings"):
        Account.objects.get_or_create(
            merchant=merchant, name=account, defaults={"currency": currency, "balance": BALANCE}
        )


def _login(
    name: str, *, is_superuser: bool = False, group: str = "", permissions: Any = ()
) -> None:
    user, new = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": True, "is_superuser": is_superuser}
    )
    if new:
        user.set_password(name)
        user.save(update_fields=["password"])
    user.groups.add(*Group.objects.filter(name=group))
    user.user_permissions.add(*permissions)


def _viewing() -> list[Permission]:
    ours = Permission.objects.filter(content_type__app_label="payments")
    return list(ours.filter(codename__startswith="view_"))


def _operating() -> list[Permission]:
    ours = Permission.objects.filter(content_type__app_label="payments")
    return list(ours.filter(codename="operate_payments"))
