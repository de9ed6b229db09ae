"""Commands where the database is away: one line, no traceback."""

from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

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
