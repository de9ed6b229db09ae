"""Celery's settings are checked at the start, each by its number (R35)."""

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
from celery.concurrency import get_implementation
from celery.signals import celeryd_after_setup

from idempotency.checks import check_celery
from idempotency.operations import wake

GOOD = {
    "task_time_limit": 40,
    "task_soft_time_limit": None,
    "worker_pool": "prefork",
    "task_ignore_result": True,
    "task_always_eager": False,
    "task_reject_on_worker_lost": False,
    "task_acks_on_failure_or_timeout": True,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "result_backend": None,
    "broker_url": "redis://127.0.0.1:6379/0",
    "broker_transport_options": {"visibility_timeout": 600, "socket_timeout": 1},
    "beat_schedule": {"wake": {"task": "idempotency.tasks.wake", "schedule": 5.0}},
}
EXPIRING = {"schedule": 5.0, "options": {"expires": 120.0}}


def ids(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> list[str]:
    monkeypatch.setattr(wake, "celery_settings", lambda: GOOD | changed)
    messages = check_celery()
    assert all(message.hint for message in messages)
    return [str(message.id).removeprefix("idempotency.") for message in messages]


def test_the_deployments_own_settings_are_in_order() -> None:
    assert check_celery() == []


def test_without_celery_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake, "celery_settings", lambda: None)
    assert check_celery() == []


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, []),
        ({"task_soft_time_limit": 30}, ["E040"]),
        ({"task_time_limit": None}, ["E041"]),
        ({"task_time_limit": 45}, ["E043"]),
        ({"broker_transport_options": {"socket_timeout": 1}}, []),
        (
            {"broker_transport_options": {"visibility_timeout": 40, "socket_timeout": 1}},
            ["E044"],
        ),
        ({"result_backend": "redis://", "task_ignore_result": False}, ["W040"]),
        ({"result_backend": "redis://"}, []),
        ({"task_reject_on_worker_lost": True}, ["W041"]),
        ({"task_acks_on_failure_or_timeout": False}, ["W042"]),
        ({"worker_cancel_long_running_tasks_on_connection_loss": True}, ["W043"]),
        ({"broker_transport_options": {"visibility_timeout": 600}}, ["W044"]),
        ({"broker_url": "amqp://guest@127.0.0.1//", "broker_transport_options": {}}, ["W045"]),
        ({"task_always_eager": True}, ["W046"]),
        ({"beat_schedule": {"wake": {"task": "idempotency.tasks.wake"} | EXPIRING}}, ["W047"]),
        ({"worker_pool": "gevent"}, ["W048"]),
        ({"beat_schedule": {"statements": {"task": "shop.statements"} | EXPIRING}}, []),
        (
            {
                "broker_url": "amqp://guest@127.0.0.1//",
                "broker_transport_options": {"confirm_publish": True},
            },
            [],
        ),
    ],
)
def test_r35_each_setting_that_can_lose_or_double_work(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], found: list[str]
) -> None:
    assert ids(monkeypatch, **changed) == found


@pytest.mark.parametrize(
    ("pool", "warned"), [("prefork", False), ("threads", True), ("solo", True)]
)
def test_r35_a_worker_says_that_its_pool_ends_no_hung_task(
    pool: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # As a worker has done by then.
    importlib.import_module("idempotency.tasks")
    worker = SimpleNamespace(pool_cls=get_implementation(pool))
    celeryd_after_setup.send(sender="worker@here", instance=worker, conf=None)
    assert ("knows no task_time_limit" in caplog.text) is warned


def test_r35_a_run_must_fit_into_the_hard_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ids(monkeypatch, task_time_limit=34)
    assert found
    assert set(found) == {"E042"}
