import pytest
import redis
from django.conf import LazySettings

from project import beat


def test_schedule_is_intervals_that_void_their_messages(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {"RECONCILE_EVERY": 7, "WAKE_EVERY": 3, "PURGE_EVERY": 60}
    settings.PAYMENTS = {"FOLLOW_EVERY": 20}
    assert {
        name: (entry["task"], entry["schedule"], entry["options"]["expires"])
        for name, entry in beat.schedule().items()
    } == {
        "idempotency.tasks.reconcile": ("idempotency.tasks.reconcile", 7.0, 7.0),
        "idempotency.tasks.wake": ("idempotency.tasks.wake", 3.0, 3.0),
        "idempotency.tasks.purge": ("idempotency.tasks.purge", 60.0, 60.0),
        "payments.tasks.follow_up": ("payments.tasks.follow_up", 20.0, 20.0),
    }


def test_celery_app_has_the_schedule_in_memory() -> None:
    from project import celery_app

    assert set(celery_app.conf.beat_schedule) == set(beat.schedule())
    assert celery_app.conf.beat_scheduler == "celery.beat:Scheduler"


def test_beat_is_fresh_while_its_mark_lasts(store: redis.Redis) -> None:
    assert not beat.fresh()
    store.set(beat.HEARTBEAT_KEY, 1, px=60_000)
    assert beat.fresh()
    store.pexpire(beat.HEARTBEAT_KEY, 0)
    assert not beat.fresh()


def test_freshness_of_an_unreachable_store_is_an_error(settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(redis.ConnectionError):
        beat.fresh()
