import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from celery.signals import after_task_publish, before_task_publish
from django.conf import LazySettings
from django.db import OperationalError, connections

from idempotency.clock import Clock
from idempotency.models import Heartbeat
from idempotency.operations import heartbeat
from project import beat
from tests.support.factories import ago


@pytest.fixture
def unconnected() -> Iterator[None]:
    """Take away what a test connects to Celery's signals."""
    known = [
        (signal, list(signal.receivers or ()))
        for signal in (before_task_publish, after_task_publish)
    ]
    yield
    for signal, receivers in known:
        signal.receivers = receivers


def test_schedule_is_intervals_whose_messages_no_clock_makes_void(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {"RECONCILE_EVERY": 7, "WAKE_EVERY": 3, "PURGE_EVERY": 300}
    settings.PAYMENTS = {"FOLLOW_EVERY": 20}
    assert {
        name: (entry["task"], entry["schedule"].run_every.total_seconds(), set(entry))
        for name, entry in beat.schedule().items()
    } == {
        task: (task, seconds, {"task", "schedule"})
        for task, seconds in {
            "idempotency.tasks.reconcile": 7.0,
            "idempotency.tasks.wake": 3.0,
            "idempotency.tasks.purge": 300.0,
            "payments.tasks.follow_up": 20.0,
            "payments.tasks.tidy": 300.0,
        }.items()
    }


def test_a_clock_that_is_set_back_does_not_stop_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Celery("elsewhere", set_as_current=False)
    wall = datetime.now(UTC)
    monkeypatch.setattr(app, "now", lambda: wall)
    passed = 1_000.0
    monkeypatch.setattr(beat, "SYSTEM", Clock(now=lambda: passed))
    each = [ScheduleEntry(name=name, app=app, **entry) for name, entry in beat.schedule().items()]
    wall -= timedelta(hours=5)
    passed += 301
    assert [entry.is_due()[0] for entry in each] == [True] * len(each)


def test_every_task_of_the_schedule_is_watched_at_its_interval() -> None:
    names = {
        name.rpartition(".")[2].replace("_", "-"): entry for name, entry in beat.schedule().items()
    }
    assert {task.name: task.every() for task in heartbeat.watched()} == {
        name: entry["schedule"].run_every.total_seconds() for name, entry in names.items()
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # 02:00 becomes 03:00, and 02:00 becomes 01:00 again, where the host's clock is that of Los Angeles.
        ("2026-03-08T09:59:58+00:00", "2026-03-08T10:00:03+00:00"),
        ("2026-11-01T08:59:58+00:00", "2026-11-01T09:00:03+00:00"),
    ],
)
def test_916_a_change_of_clocks_neither_skips_nor_doubles_a_turn(before: str, after: str) -> None:
    app = Celery("elsewhere", set_as_current=False)
    app.conf.update(timezone="America/Los_Angeles")
    last, now = datetime.fromisoformat(before), datetime.fromisoformat(after)
    for entry in beat.schedule().values():
        every = entry["schedule"].run_every.total_seconds()
        for moment, due in ((last + timedelta(seconds=1), False), (now, every <= 5)):
            interval = schedule(every, nowfun=partial(moment.astimezone, app.timezone), app=app)
            is_due, pause = interval.is_due(last.astimezone(app.timezone))
            assert (is_due, 0 < pause <= every) == (due, True)


def test_no_task_of_ours_leaves_a_result() -> None:
    from project import celery_app

    celery_app.loader.import_default_modules()
    ours = [
        task
        for name, task in celery_app.tasks.items()
        if name.startswith(("idempotency.", "payments."))
    ]
    assert len(ours) >= 5
    assert all(task.ignore_result for task in ours)


def test_celery_app_has_the_schedule_in_memory() -> None:
    from project import celery_app

    assert set(celery_app.conf.beat_schedule) == set(beat.schedule())
    assert celery_app.conf.beat_scheduler == "celery.beat:Scheduler"


@pytest.mark.django_db
def test_beat_is_fresh_while_its_last_sign_is_young() -> None:
    assert not beat.fresh()
    heartbeat.beat(name="beat")
    assert beat.fresh()
    Heartbeat.objects.update(last_ok_at=ago(seconds=16))
    assert not beat.fresh()


@pytest.mark.django_db
def test_a_message_gives_a_sign_before_it_and_after_the_broker_has_taken_it(
    unconnected: None,
) -> None:
    beat.report_signs()
    # What has never succeeded is awaited from now on.
    assert set(heartbeat.ages()) == {"beat"} | {task.name for task in heartbeat.watched()}
    assert heartbeat.silent() == []
    Heartbeat.objects.all().delete()
    before_task_publish.send(sender="idempotency.tasks.wake")
    assert set(heartbeat.ages()) == {"beat"}
    after_task_publish.send(sender="idempotency.tasks.wake")
    assert set(heartbeat.ages()) == {"beat", "broker"}


def test_beat_goes_on_without_a_database(
    unconnected: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(**_: object) -> None:
        raise OperationalError("refused")

    monkeypatch.setattr(heartbeat, "beat", refuse)
    monkeypatch.setattr(heartbeat, "await_all", refuse)
    monkeypatch.setattr(connections["default"], "close", lambda: None)
    with caplog.at_level(logging.WARNING):
        beat.report_signs()
    assert "beat cannot show that it is alive" in caplog.text
