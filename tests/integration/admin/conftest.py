"""People of each role, logged in."""

import io
from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.test import Client

from idempotency.management.commands.idempotency_roles import ENGINEERS, OPERATIONS, SUPPORT

Login = Callable[[str], Client]
ROLES = {"support": SUPPORT, "operations": OPERATIONS, "engineers": ENGINEERS}


@pytest.fixture(autouse=True)
def _no_breakers(settings: LazySettings) -> None:
    """Show none of the host's breakers: a test makes its own."""
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ADMIN_BREAKERS": None}


@pytest.fixture
def login(db: None) -> Login:
    """Return a function that logs a person of a role in, under the role's name."""
    call_command("idempotency_roles", stdout=io.StringIO())

    def log_in(role: str) -> Client:
        user = User.objects.create_user(role, is_staff=True, is_superuser=role == "superuser")
        if role in ROLES:
            user.groups.add(Group.objects.get(name=ROLES[role]))
        client = Client()
        client.force_login(user)
        return client

    return log_in
