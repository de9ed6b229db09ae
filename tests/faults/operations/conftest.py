"""Real worker, beat and web processes on the test's own database; what they do is seen in its rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from idempotency.models import Key, Operation
from idempotency.operations import defer
from project.embedded import Store
from project.embedded.server import Server
from tests.support.poison import operations as poison
from tests.support.rabbitmq import RabbitMQ
from tests.support.servers import servers
from tests.support.stack import Stack

__all__ = ["poison"]


@pytest.fixture
def stack(live_stack: Stack) -> Stack:
    """Return a deployment whose sweeps come often, with the poison app installed."""
    live_stack.environment |= {
        "DJANGO_SETTINGS_MODULE": "tests.support.poison.settings",
        "IDEMPOTENCY_WAKE_EVERY": "0.5",
        "IDEMPOTENCY_RECONCILE_EVERY": "0.5",
        "LOG_LEVEL": "INFO",
    }
    return live_stack


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Server]:
    """Return a broker of its own, which a test may stop, freeze or empty; RabbitMQ where that is asked for."""
    home = tmp_path / "broker"
    server: Server = RabbitMQ(home=home) if servers.broker else Store(home=home, durable=False)
    server.start()
    yield server
    server.stop()


def promise(name: str, given: object = None) -> str:
    """Promise work without a nudge; return the operation's id."""
    return str(defer(name, given or {}, delay=0.001))


def key_of(operation: str) -> Key:
    return Key.objects.get(work__id=operation)


def work_of(operation: str) -> Operation:
    return Operation.objects.get(id=operation)


def marks(key: object = "") -> int:
    """Return how many marks were left, by the work of one key or by all."""
    return Group.objects.filter(name__contains=f"{key}/").count()


def let_lapse() -> int:
    """Let every lease run out whose row is not locked, by moving it in the row; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET lease_until = '2000-01-01' WHERE id = ANY(ARRAY("
            "SELECT id FROM idempotency_key WHERE lease_until > '2000-01-01' FOR UPDATE SKIP LOCKED))"
        )
        return int(cursor.rowcount)


def let_look_up() -> None:
    """Let every ended or dead send be settled, by moving its times in the row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_sender SET ended_at = ended_at - interval '1 hour', "
            "send_before = send_before - interval '1 hour', dead_at = dead_at - interval '1 hour'"
        )
        cursor.execute(
            "UPDATE idempotency_key SET next_lookup_at = clock_timestamp() WHERE next_lookup_at IS NOT NULL"
        )
