"""The status monitor: the truth, to its owner, without side effects (R31, R34)."""

import time
import uuid
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from idempotency.exceptions import Cancelled, TemporaryFailure
from idempotency.ledger.purge import purge
from idempotency.models import Key
from idempotency.operations import monitor, runner
from idempotency.operations.ids import new_id
from idempotency.types import State
from tests.integration.operations.conftest import Caller, key_of, let_lapse, make_due, work_of
from tests.support.deferring import jobs
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


def test_r31_it_follows_the_work_to_its_result(caller: Caller) -> None:
    operation = caller.job({"a": 1})
    waiting = caller.look(operation)
    jobs.script = [TemporaryFailure(retry_after=60)]
    runner.run()
    again = caller.look(operation)
    make_due()
    runner.run()
    done = caller.look(operation)

    assert waiting.status_code == again.status_code == done.status_code == 200
    assert (waiting.json()["done"], waiting.json()["attempts"]) == (False, 0)
    assert waiting["Cache-Control"] == "no-store"
    assert again.json()["attempts"] == 1
    assert "retry_at" in again.json()
    assert 59 < int(again["Retry-After"]) <= 91
    assert (done.json()["done"], done.json()["result"]) == (True, {"did": {"a": 1}})
    assert "Retry-After" not in done
    assert "error" not in done.json()
    assert "retry_at" not in done.json()
    assert done.json()["updated_at"] > done.json()["created_at"]


def test_r31_a_failure_is_told_as_an_error(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [ValueError("secret")]
    runner.run()

    seen = caller.look(operation).json()
    assert (seen["done"], seen["state"], seen["error"]["code"]) == (True, "completed", "gave-up")
    assert "result" not in seen
    assert "secret" not in str(seen)


def test_r31_others_see_nothing(caller: Caller, stranger: Caller) -> None:
    operation = caller.job()

    assert stranger.look(operation).status_code == 404
    assert stranger.post(f"/api/operations/{operation}/cancel/").status_code == 404
    assert caller.look(uuid.uuid4()).status_code == 404
    assert key_of(operation).state == "in_progress"


def test_r31_after_the_purge_it_is_gone_for_its_owner_only(
    caller: Caller, stranger: Caller
) -> None:
    operation = caller.job()
    runner.run()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_key SET settled_at = settled_at - interval '31 days'")
    assert purge().keys == 1

    gone = caller.look(operation)
    assert (gone.status_code, gone.json()["code"]) == (410, "result-expired")
    assert caller.post(f"/api/operations/{operation}/cancel/").status_code == 410
    assert stranger.look(operation).status_code == 404


def test_r31_ids_say_whose_they_were() -> None:
    from idempotency.operations.ids import was_made_for

    made = {new_id(scope="user:1") for _ in range(200)}

    assert len(made) == 200
    assert all(was_made_for(each, scope="user:1") for each in made)
    assert not any(was_made_for(each, scope="user:2") for each in made)
    assert {each.version for each in made} == {7}


def test_r31_a_lapsed_lease_reads_as_unknown(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = [lambda: let_lapse(operation)]
    seen: list[Any] = []
    other_side.script = [lambda: (let_lapse(operation), seen.append(caller.look(operation).json()))]  # type: ignore[list-item, func-returns-value]
    runner.run()

    assert (seen[0]["state"], seen[0]["done"]) == ("unknown", False)


def test_i8_polls_of_an_unknown_operation_ask_nobody_and_write_nothing(caller: Caller) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = ["lose"]
    runner.run()
    before = Key.objects.values().get()

    for _ in range(20):
        answer = caller.look(operation)
        assert (answer.json()["state"], answer.json()["done"]) == ("unknown", False)
        assert 1 <= int(answer["Retry-After"]) <= 5

    assert other_side.looked_up == 0
    assert Key.objects.values().get() == before


def test_a_look_is_two_short_queries_at_most(caller: Caller) -> None:
    operation = caller.job()
    with CaptureQueriesContext(connection) as captured:
        caller.look(operation)
    assert len([q for q in captured if "idempotency_operation" in q["sql"]]) == 1


# -- Prefer: wait ------------------------------------------------------------------------------------------------------


def test_prefer_wait_answers_as_soon_as_it_is_done(caller: Caller) -> None:
    operation = caller.job()
    answers: list[Any] = []

    def wait() -> None:
        answers.append(caller.look(operation, HTTP_PREFER="respond-async, wait=15"))
        connection.close()

    thread = Thread(target=wait)
    began = time.monotonic()
    thread.start()
    runner.run()
    thread.join()

    assert answers[0].json()["done"] is True
    assert answers[0]["Preference-Applied"] == "wait=15"
    assert time.monotonic() - began < 5


def test_prefer_wait_is_bounded(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "WAIT_AT_MOST", 0.3)
    operation = caller.job(delay=100)
    began = time.monotonic()

    answer = caller.look(operation, HTTP_PREFER="wait=3600")

    assert answer.json()["done"] is False
    assert time.monotonic() - began < 3


def test_r10_a_waiting_poll_holds_no_connection(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    class Watching:
        @staticmethod
        def wait(_: object, seconds: float) -> bool:
            held.append(connection.connection is not None)
            time.sleep(min(seconds, 0.05))
            return False

    monkeypatch.setattr(monitor, "SYSTEM", Watching)
    monkeypatch.setattr(monitor, "WAIT_AT_MOST", 0.3)
    caller.look(caller.job(delay=100), HTTP_PREFER="wait=1")

    assert held
    assert not any(held)


@pytest.mark.parametrize("prefer", ["wait=x", "await=5", "wait", "wait=-1", "return=minimal"])
def test_a_preference_that_says_nothing_is_ignored(caller: Caller, prefer: str) -> None:
    answer = caller.look(caller.job(), HTTP_PREFER=prefer)
    assert (answer.status_code, "Preference-Applied" in answer) == (200, False)


# -- cancel ------------------------------------------------------------------------------------------------------------


def test_r34_what_waits_is_cancelled_at_once(caller: Caller) -> None:
    operation = caller.job()
    first = caller.post(f"/api/operations/{operation}/cancel/")
    second = caller.post(f"/api/operations/{operation}/cancel/")

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert (first.json()["state"], first.json()["done"], first.json()["attempts"]) == (
        "completed",
        True,
        0,
    )
    assert first.json()["error"]["code"] == "cancelled"
    assert runner.run() is None
    assert jobs.runs == []
    assert jobs.ended == [(key_of(operation).id, State.COMPLETED, Cancelled)]
    assert caller.post("/jobs/", key="other").status_code == 500


def test_r34_between_two_attempts_it_spends_none(caller: Caller) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure(retry_after=60)]
    runner.run()

    assert caller.post(f"/api/operations/{operation}/cancel/").status_code == 200
    assert work_of(operation).attempts == 1


def test_r34_what_runs_or_is_over_cannot_be_cancelled(caller: Caller) -> None:
    operation = caller.job()
    answers = []
    jobs.script = [lambda _: answers.append(_cancel_in_a_thread(caller, operation))]
    runner.run()
    answers.append(caller.post(f"/api/operations/{operation}/cancel/"))

    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (409, "too-late")
    assert caller.look(operation).json()["result"] == {"did": 1}


def _cancel_in_a_thread(caller: Caller, operation: str) -> Any:
    answers: list[Any] = []

    def cancel() -> None:
        answers.append(caller.post(f"/api/operations/{operation}/cancel/"))
        connection.close()

    thread = Thread(target=cancel)
    thread.start()
    thread.join()
    return answers[0]


@pytest.mark.parametrize("ending", ["open", "ambiguous", "applied"])
def test_r34_what_may_have_happened_cannot_be_cancelled(caller: Caller, ending: str) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    other_side.script = ["apply-and-lose"]
    runner.run()
    _wait_again_with_a_step(operation, ending)

    answer = caller.post(f"/api/operations/{operation}/cancel/")

    assert (answer.status_code, answer.json()["code"]) == (409, "too-late")
    assert key_of(operation).due_at is not None


def _wait_again_with_a_step(operation: str, ending: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET state = 'in_progress', unknown_since = NULL, next_lookup_at = NULL, "
            "due_at = clock_timestamp() + interval '1 minute' WHERE id = %s",
            [key_of(operation).id],
        )
        if ending == "open":
            cursor.execute("UPDATE idempotency_sender SET ending = NULL, ended_at = NULL")
        if ending == "applied":
            cursor.execute(
                "UPDATE idempotency_step SET applied_at = clock_timestamp(), result = '{}'"
            )
