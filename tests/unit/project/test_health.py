import pytest
import redis
from django.conf import LazySettings
from django.db import OperationalError, connection
from django.test import Client

from idempotency.operations import heartbeat
from tests.support.factories import ago, make_waiting
from tests.support.outage import Outage


def test_alive_without_database_or_store(client: Client, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/healthz/")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok"}


@pytest.mark.django_db
def test_ready_with_database_store_and_beat(client: Client, store: redis.Redis) -> None:
    heartbeat.beat(name="beat")
    answer = client.get("/readyz/")
    assert answer.status_code == 200
    assert answer.json()["checks"] == {"database": "ok", "store": "ok", "beat": "ok"}


@pytest.mark.django_db
def test_not_ready_while_beat_is_silent(client: Client, store: redis.Redis) -> None:
    answer = client.get("/readyz/")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"database": "ok", "store": "ok", "beat": "silent"}


@pytest.mark.django_db
def test_silent_workers_and_late_work_are_told_and_turn_no_traffic_away(
    client: Client, store: redis.Redis
) -> None:
    heartbeat.beat(name="beat")
    heartbeat.beat(name="wake")
    make_waiting(due_at=ago(minutes=3))
    answer = client.get("/readyz/")
    assert answer.status_code == 200
    assert answer.json()["warnings"] == {
        "tasks": "silent: reconcile, purge, tidy, follow-up",
        "due": "late: 180 s",
    }


@pytest.mark.django_db
def test_not_ready_without_store(client: Client, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/readyz/")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {
        "database": "ok",
        "store": "unreachable",
        "beat": "silent",
    }


@pytest.mark.django_db
def test_not_ready_without_database_and_says_no_address(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OperationalError("connection to 10.0.0.1 refused")

    monkeypatch.setattr(connection, "cursor", refuse)
    answer = client.get("/readyz/")
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == "unreachable"
    assert b"10.0.0.1" not in answer.content


@pytest.mark.django_db(transaction=True)
def test_not_ready_while_the_database_takes_no_writes(client: Client) -> None:
    heartbeat.beat(name="beat")
    with Outage().read_only():
        answer = client.get("/readyz/")
    assert answer.status_code == 503
    assert answer.json()["checks"]["database"] == "read-only"


@pytest.mark.django_db
def test_metrics_are_served_as_text(client: Client) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    assert b"python_info" in answer.content


@pytest.mark.parametrize("path", ["/healthz/", "/readyz/", "/metrics"])
def test_probe_cannot_be_posted_to(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
