"""Any number of simultaneous claimants, one winner (R8, R10; A8–A11)."""

import collections
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction

from idempotency.exceptions import CallFailed
from idempotency.models import Key, Sender
from idempotency.testing import together
from tests.integration.core.conftest import Caller
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


def sends(caller: Caller, path: str, body: object, key: str) -> Callable[[int], Any]:
    """Return what each twin does: send that request."""
    return lambda _: caller.post(path, body, key=key)


def words(answers: list[Any]) -> collections.Counter[str]:
    """Say what each caller was told."""

    def word(answer: Any) -> str:
        if answer.status_code == 201:
            return "replay" if "Idempotent-Replayed" in answer else "first"
        return str(answer.json()["code"])

    return collections.Counter(word(answer) for answer in answers)


@pytest.mark.parametrize("twins", [2, 20])
@pytest.mark.parametrize("path", ["/local/", "/charge/"])
def test_r8_one_of_many_twins_runs(caller: Caller, path: str, twins: int) -> None:
    for number in range(100 // twins):
        key, before = uuid.uuid4().hex, len(other_side.effects)
        answers = together(
            twins,
            sends(caller, path, {"name": f"r{number}"}, key),
        )
        told = words(answers)
        assert told["first"] == 1, told
        assert set(told) <= {"first", "replay", "in-progress"}, told
        assert len({a.content for a in answers if a.status_code == 201}) == 1
        for answer in answers:
            if answer.status_code == 409:
                assert int(answer["Retry-After"]) >= 1
        assert len(other_side.effects) == before + (path == "/charge/")
        assert Key.objects.get(key=key).state == "completed"


def test_r13_a_twin_of_an_uncommitted_claim_is_told_at_once(caller: Caller, key: str) -> None:
    running, answered = threading.Event(), threading.Event()

    def first_one() -> Any:
        try:
            return caller.post("/local/", {"name": "a"}, key=key)
        finally:
            connection.close()

    def slow(sender: object, **_: object) -> None:
        running.set()
        assert answered.wait(30), "the twin waited for the first"

    from django.db.models.signals import post_save

    post_save.connect(slow, sender=Group)
    try:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(first_one)
            assert running.wait(30)
            twin = caller.post("/local/", {"name": "a"}, key=key)
            answered.set()
            assert first.result(30).status_code == 201
    finally:
        answered.set()
        post_save.disconnect(slow, sender=Group)
    assert (twin.status_code, twin.json()["code"]) == (409, "in-progress")


def test_a10_after_the_first_rolled_back_the_twin_may_run(caller: Caller, key: str) -> None:
    assert caller.post("/local/", {"name": "a", "kind": "raise"}, key=key).status_code == 500
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201


def test_r8_replays_never_turn_into_a_conflict(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    for _ in range(10):
        assert words(together(10, lambda _: caller.post("/local/", {"name": "a"}, key=key))) == {
            "replay": 10
        }


def test_r8_a_released_key_is_claimed_again_by_one(caller: Caller) -> None:
    for number in range(10):
        key = uuid.uuid4().hex
        other_side.script[:] = [CallFailed("refused", sent=False)]
        body = {"name": f"x{number}"}
        assert caller.post("/charge/", body, key=key).status_code == 503
        before = len(other_side.requests)
        told = words(together(8, sends(caller, "/charge/", body, key)))
        assert told["first"] == 1, told
        assert len(other_side.requests) == before + 1
        assert set(told) <= {"first", "replay", "in-progress"}, told


def test_r8_an_expired_key_is_claimed_again_by_one(caller: Caller, key: str) -> None:
    for number in range(10):
        caller.post("/local/", {"name": f"old{number}"}, key=key)
        Key.objects.update(settled_at="2020-01-01T00:00:00Z")
        told = words(together(8, sends(caller, "/local/", {"name": f"new{number}"}, key)))
        assert told["first"] == 1, told
        assert Group.objects.filter(name=f"new{number}").count() == 1
        Key.objects.update(settled_at="2020-01-01T00:00:00Z")


def test_a3_a_refused_twin_frees_nobody_elses_key(caller: Caller, key: str) -> None:
    told: list[str] = []

    def meanwhile() -> None:
        def twin(name: str) -> str:
            return str(
                together(1, lambda _: caller.post("/charge/", {"name": name}, key=key))[0].json()[
                    "code"
                ]
            )

        told.extend(twin(name) for name in ("a", "other", "a"))

    other_side.script.append(meanwhile)
    first = caller.post("/charge/", {"name": "a"}, key=key)
    assert first.status_code == 201
    assert told == ["in-progress", "key-reused", "in-progress"]
    assert len(other_side.effects) == 1
    assert Sender.objects.count() == 1


def test_r8_a_claim_inside_a_callers_transaction_is_refused_loudly(
    caller: Caller, key: str
) -> None:
    with transaction.atomic():
        assert caller.post("/local/", {"name": "a"}, key=key).status_code == 500
    assert not Group.objects.exists()


def test_r10_a_waiting_twin_gets_the_first_ones_answer(
    caller: Caller, key: str, settings: pytest.FixtureRequest
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "WAIT": 20}  # type: ignore[attr-defined]
    told = words(together(5, lambda _: caller.post("/charge/", {"name": "a"}, key=key)))
    assert told == {"first": 1, "replay": 4}


def test_b1_another_user_does_not_wait_for_it(caller: Caller, key: str) -> None:
    bob = Caller(User.objects.create_user("bob"))
    told: list[int] = []
    other_side.script.append(
        lambda: told.append(
            together(1, lambda _: bob.post("/charge/", {"name": "b"}, key=key))[0].status_code
        )
    )
    caller.post("/charge/", {"name": "a"}, key=key)
    assert told == [201]
