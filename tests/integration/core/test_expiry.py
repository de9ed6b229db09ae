"""Two horizons, counted from settlement (R9, R20, R21)."""

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group
from django.db import connection

from idempotency.clock import Clock
from idempotency.exceptions import CallFailed, CallUnknown
from idempotency.ledger.purge import purge, purge_batch
from idempotency.models import Key, Sender, Step
from tests.integration.core.conftest import Caller
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)

RESULT_TTL = 259_200
KEY_TTL = 2_592_000


def age(seconds: float) -> None:
    """Move the clock: every settlement is that much older."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET settled_at = settled_at - %s * interval '1 second'",
            [seconds],
        )


@pytest.mark.parametrize("purged", [False, True])
def test_r20_between_the_horizons_nothing_runs(caller: Caller, key: str, purged: bool) -> None:
    caller.post("/charge/", {"name": "a"}, key=key)
    age(RESULT_TTL + 1)
    if purged:
        assert purge_batch(limit=10).answers == 1

    answer = caller.post("/charge/", {"name": "a"}, key=key)

    assert (answer.status_code, answer.json()["code"]) == (410, "result-expired")
    assert answer.json()["resource"] == "/groups/a/"
    assert len(other_side.requests) == 1


@pytest.mark.parametrize("purged", [False, True])
def test_r20_past_both_the_key_is_new_and_meets_nothing_of_its_past(
    caller: Caller, key: str, purged: bool
) -> None:
    caller.post("/charge/", {"name": "a"}, key=key)
    age(KEY_TTL + 1)
    if purged:
        assert purge_batch(limit=10).keys == 1
        assert not Step.objects.exists()

    answer = caller.post("/charge/", {"name": "b"}, key=key)

    assert answer.status_code == 201
    assert "Idempotent-Replayed" not in answer
    assert len({downstream for downstream, _ in other_side.requests}) == 2
    assert Key.objects.get().state == "completed"
    assert Key.objects.get().reference == "b"
    assert caller.post("/charge/", {"name": "b"}, key=key).content == answer.content


def test_r20_just_before_the_first_horizon_it_is_replayed(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    age(RESULT_TTL - 60)
    assert caller.post("/local/", {"name": "a"}, key=key)["Idempotent-Replayed"] == "true"


def test_r9_a_mismatch_goes_before_an_expired_result_and_after_an_expired_key(
    caller: Caller, key: str
) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    age(RESULT_TTL + 1)
    assert caller.post("/local/", {"name": "b"}, key=key).status_code == 422
    age(KEY_TTL)
    assert caller.post("/local/", {"name": "b"}, key=key).status_code == 201


def test_j6_what_is_not_settled_never_expires(caller: Caller, key: str) -> None:
    other_side.script.append(CallUnknown("lost"))
    caller.post("/charge/", {"name": "a"}, key=key)
    Key.objects.update(created_at="2020-01-01T00:00:00Z", unknown_since="2020-01-01T00:00:00Z")
    assert purge_batch(limit=10).keys == 0
    assert caller.post("/charge/", {"name": "a"}, key=key).json()["code"] == "outcome-unknown"


def test_j7_a_released_key_expires_like_any_settled_one(caller: Caller, key: str) -> None:
    other_side.script.append(CallFailed("refused", sent=False))
    caller.post("/charge/", {"name": "a"}, key=key)
    age(KEY_TTL + 1)
    assert caller.post("/charge/", {"name": "other"}, key=key).status_code == 201


def test_r21_purge_goes_in_batches_and_waits_for_nobody(caller: Caller) -> None:
    for number in range(5):
        caller.post("/local/", {"name": f"n{number}"}, key=f"k{number}")
    age(KEY_TTL + 1)
    locked = Key.objects.order_by("settled_at").values_list("id", flat=True)[0]
    import threading

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        from django.db import connection as own
        from django.db import transaction

        with transaction.atomic():
            Key.objects.select_for_update().get(id=locked)
            held.set()
            done.wait(30)
        own.close()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(30)
    assert [purge_batch(limit=3).keys for _ in range(3)] == [3, 1, 0]
    done.set()
    holder.join()
    assert purge_batch(limit=3).keys == 1
    assert not Sender.objects.exists()
    assert Group.objects.count() == 5


class Watch:
    """A clock on which each batch takes a second, and which remembers for how long it was waited on."""

    def __init__(self) -> None:
        self.at = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        self.at += 1
        return self.at

    def wait(self, cancelled: object, seconds: float) -> bool:
        self.at += seconds
        self.pauses.append(seconds)
        return False


@pytest.mark.parametrize(
    ("pause", "seconds", "keys", "pauses"),
    [(3, 100, 3, [3, 3, 3]), (0, 100, 3, [0, 0, 0]), (3, 10, 2, [3]), (3, 1, 1, [])],
)
def test_r21_a_purge_pauses_after_each_batch_and_ends_in_time(
    caller: Caller,
    settings: LazySettings,
    pause: float,
    seconds: float,
    keys: int,
    pauses: list[float],
) -> None:
    watch = Watch()
    clock = Clock(now=watch.now, wait=watch.wait)
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "PURGE_BATCH": 1, "PURGE_PAUSE": pause}
    for number in range(3):
        caller.post("/charge/", {"name": str(number)}, key=f"key-{number}")
    age(KEY_TTL + 1)

    purged = purge(seconds=seconds, clock=clock)

    assert (purged.keys, Key.objects.count()) == (keys, 3 - keys)
    assert watch.pauses == pauses
    assert watch.at <= seconds + 2
