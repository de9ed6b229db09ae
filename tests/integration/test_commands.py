"""Commands where the database is away, or refuses: one line, no traceback; and what they leave behind."""

import io
import os
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from idempotency.models import Heartbeat
from idempotency.operations import heartbeat
from payments.degradation import read_only
from tests.support.factories import ago
from tests.support.outage import Outage

pytestmark = pytest.mark.django_db(transaction=True)
COMMANDS = [
    "idempotency_inspect --stuck",
    "idempotency_purge",
    "idempotency_reconcile",
    "idempotency_roles",
    "idempotency_wake",
    "idempotency_wake --run",
    "payments_follow",
]


@pytest.fixture
def outage() -> Iterator[None]:
    outage = Outage()
    outage.begin()
    yield
    outage.end()
    connection.close()


def test_every_command_says_so_in_one_line(outage: None) -> None:
    for line in COMMANDS:
        with pytest.raises(CommandError, match=r"^The database cannot be asked: .+$") as caught:
            call_command(*line.split())
        assert caught.value.returncode == 1


@pytest.fixture
def standby() -> Iterator[None]:
    """A database that takes no writes, as behind an address that still leads to the old leader."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    yield
    connection.close()


def test_a_database_that_takes_no_writes_is_told_in_one_line(standby: None) -> None:
    for line in COMMANDS[1:]:
        with pytest.raises(CommandError, match=r"^The database refuses it: .+ read-only .+$"):
            call_command(*line.split())


def test_a_reconciler_that_cron_runs_is_not_silent() -> None:
    heartbeat.await_all()
    Heartbeat.objects.update(last_ok_at=ago(hours=1))
    call_command("idempotency_reconcile", "--dry-run", stdout=io.StringIO())
    assert "reconcile" in heartbeat.silent()
    call_command("idempotency_reconcile", stdout=io.StringIO())
    assert "reconcile" not in heartbeat.silent()


def test_a_user_without_a_name_can_close_the_shop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    switch = read_only()
    try:
        call_command("payments_read_only", "on", "--reason", "restore", stdout=io.StringIO())
        assert switch.ask() == "restore"
    finally:
        call_command("payments_read_only", "off", stdout=io.StringIO())
    assert switch.ask() is None
