"""A 202: key, operation and answer in one commit, replayed in every state (R4, R31, R32)."""

import contextlib
import re
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.exceptions import Misuse, TemporaryFailure
from idempotency.models import Key, Operation
from idempotency.operations import accept, defer, runner
from idempotency.testing import pass_time
from tests.integration.operations.conftest import Caller, key_of, make_due, work_of
from tests.support import deferring
from tests.support.deferring import jobs

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"operation": "test.job", "input": {"text": "hello"}}


def test_r31_the_answer_says_where_and_when(caller: Caller, nudges: list[Any]) -> None:
    answer = caller.post("/jobs/", BODY, key="k1")

    key = Key.objects.get()
    seen = answer.json()
    assert answer.status_code == 202
    assert answer["Location"] == f"/api/operations/{seen['id']}/"
    assert answer["Retry-After"] == "1"
    assert seen == {
        "id": str(Operation.objects.get().id),
        "operation": "test.job",
        "state": "in_progress",
        "done": False,
        "attempts": 0,
        "created_at": seen["created_at"],
        "updated_at": seen["updated_at"],
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen["created_at"])
    assert (key.state, key.deferred, key.lease_until, key.status) == (
        "in_progress",
        True,
        None,
        202,
    )
    assert nudges == [(str(key.id),)]


@pytest.fixture
def handlers(settings: Any) -> list[Callable[[Any], Any]]:
    """Return what `/handled/` does: the last one."""
    settings.ROOT_URLCONF = __name__
    _handlers.clear()
    return _handlers


_handlers: list[Callable[[Any], Any]] = []


class Handled(APIView):
    @idempotent(operation="test.handled", required=True)
    def post(self, request: IdempotentRequest) -> Any:
        return _handlers[-1](request)


urlpatterns = [path("handled/", Handled.as_view()), *deferring.urlpatterns]


def accept_and_undo(request: Any) -> None:
    with contextlib.suppress(ValueError), transaction.atomic():
        accept(claim=request.claim, operation="test.job", input="undone")
        raise ValueError


@pytest.mark.parametrize("written", [False, True])
def test_r31_what_the_handler_undid_is_not_promised(
    caller: Caller, handlers: list[Callable[[Any], Any]], written: bool
) -> None:
    """The key would wait for work that is not there, or be held by nobody for ever."""

    def answer(request: Any) -> Response:
        if written:
            defer("test.job", "beside it")
        accept_and_undo(request)
        return Response({"accepted": False}, status=201)

    handlers.append(answer)
    first, again = (caller.post("/handled/", {}, key="k1") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert Key.objects.get(key="k1").state == "completed"


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "given",
    ["a\0b", {"a\0": 1}, ["\ud800"], float("nan"), float("inf"), {1, 2}, {(1, 2): 3}, deep(5_000)],
    ids=["NUL", "NUL in a name", "half a pair", "NaN", "infinity", "a set", "a tuple", "deep"],
)
@pytest.mark.parametrize("promise", [accept, defer])
def test_input_that_cannot_be_kept_is_misuse_and_leaves_the_key_free(
    caller: Caller, handlers: list[Callable[[Any], Any]], promise: Callable[..., Any], given: Any
) -> None:
    seen: list[BaseException] = []

    def answer(request: Any) -> Any:
        try:
            return promise(claim=request.claim, operation="test.job", input=given)
        except Exception as error:
            seen.append(error)
            raise

    handlers.append(answer)
    assert caller.post("/handled/", {}, key="k1").status_code == 500
    assert [type(error) for error in seen] == [Misuse]
    assert not Key.objects.exists()


@pytest.mark.parametrize("given", ["\\u0000", "\U0001f600", "\\\\ud800", {"\\ud83d": "\U0001f600"}])
def test_input_that_only_looks_so_is_kept(given: Any) -> None:
    operation = defer("test.job", given)
    assert Operation.objects.get(id=operation).input == given


@pytest.mark.parametrize("written", [False, True])
def test_r31_after_it_was_undone_other_work_is_accepted(
    caller: Caller, handlers: list[Callable[[Any], Any]], written: bool
) -> None:
    def answer(request: Any) -> Response:
        if written:
            defer("test.job", "beside it")
        accept_and_undo(request)
        return accept(claim=request.claim, operation="test.job", input="done")

    handlers.append(answer)
    assert caller.post("/handled/", {}, key="k1").status_code == 202
    make_due()
    runner.drain()
    assert sorted(jobs.runs) == (["beside it", "done"] if written else ["done"])


def test_r31_a_request_accepts_one_piece_of_work(
    caller: Caller, handlers: list[Callable[[Any], Any]]
) -> None:
    """The second would be taken for a repeat of the first, and dropped."""

    def answer(request: Any) -> Response:
        accept(claim=request.claim, operation="test.job", input=1)
        return accept(claim=request.claim, operation="test.job", input=2)

    handlers.append(answer)
    assert caller.post("/handled/", {}, key="k1").status_code == 500
    assert not Key.objects.exists()


def test_r31_a_repeat_replays_the_202_in_every_state(caller: Caller) -> None:
    first = caller.post("/jobs/", BODY, key="k1")
    operation = first.json()["id"]

    def repeat() -> None:
        again = caller.post("/jobs/", BODY, key="k1")
        assert (again.status_code, again.content) == (202, first.content)
        assert again["Location"] == first["Location"]
        assert again["Idempotent-Replayed"] == "true"

    repeat()
    jobs.script = [TemporaryFailure()]
    runner.run()
    repeat()
    jobs.script = [lambda _: repeat()]
    make_due()
    runner.run()
    assert key_of(operation).state == "completed"
    repeat()
    Key.objects.filter(id=key_of(operation).id).update(
        state="unknown", unknown_since=key_of(operation).settled_at, settled_at=None
    )
    repeat()
    assert Operation.objects.count() == 1


def test_r7_a_changed_text_is_another_request(caller: Caller) -> None:
    caller.post("/jobs/", BODY, key="k1")
    changed = {"operation": "test.job", "input": {"text": " hello "}}

    assert caller.post("/jobs/", changed, key="k1").status_code == 422
    assert Operation.objects.count() == 1


def test_r4_without_a_key_each_request_is_an_operation_of_its_own(caller: Caller) -> None:
    first, second = caller.post("/jobs/", BODY), caller.post("/jobs/", BODY)

    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] != second.json()["id"]
    assert uuid.UUID(first["Idempotency-Key"]) != uuid.UUID(second["Idempotency-Key"])
    assert runner.drain() == 2
    assert Key.objects.filter(state="completed").count() == 2


def test_r31_nothing_is_promised_by_a_request_that_fails(caller: Caller, nudges: list[Any]) -> None:
    answer = caller.post("/outbox/", {"fail": True}, key="k1")

    assert answer.status_code == 500
    assert (Key.objects.count(), Operation.objects.count(), nudges) == (0, 0, [])


def test_r31_work_can_be_promised_for_later(caller: Caller, nudges: list[Any]) -> None:
    operation = caller.job(delay=60)

    assert nudges == []
    assert runner.run() is None
    assert 58 <= int(caller.look(operation)["Retry-After"]) <= 60
    make_due(operation)
    assert runner.run() is not None


def test_r40_deferring_commits_with_the_handler(caller: Caller, nudges: list[Any]) -> None:
    answer = caller.post("/outbox/", {"roles": ["a", "b"]}, key="k1")

    assert answer.status_code == 201
    minted = Key.objects.filter(operation="test.job")
    assert [(k.state, k.scope) for k in minted] == [
        ("in_progress", Key.objects.get(operation="test.outbox").scope)
    ] * 2
    assert len(nudges) == 2
    assert runner.drain() == 2
    assert [given["role"] for given in jobs.runs] == ["a", "b"]
    assert Group.objects.count() == 3


def test_r13_a_resumed_run_finds_what_it_has_deferred(caller: Caller) -> None:
    from tests.support.host import other_side

    other_side.script = ["lose"]
    caller.post("/outbox/", {"roles": ["a", "b"], "call": True}, key="k1")
    Key.objects.filter(operation="test.outbox").update(
        state="unknown", unfinished=True, lease_until=None
    )
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_step SET applied_at = clock_timestamp(), result = '{}'")

    again = caller.post("/outbox/", {"roles": ["a", "b"], "call": True}, key="k1")

    assert again.status_code == 201
    assert Operation.objects.count() == 2


def test_r40_one_role_is_one_piece_of_work(db: None) -> None:
    first = defer("test.job", {"n": 1})
    assert defer("test.job", {"n": 1}) != first
    assert set(Key.objects.values_list("scope", flat=True)) == {"~nobody"}


def test_r40_one_role_with_two_inputs_is_refused(caller: Caller) -> None:
    def twice(claim: Any) -> None:
        defer("test.guarded", {"n": 1})
        assert defer("test.guarded", {"n": 1}) == Operation.objects.get(name="test.guarded").id
        with pytest.raises(Misuse, match="role"):
            defer("test.guarded", {"n": 2})
        defer("test.guarded", {"n": 2}, role="second")

    operation = caller.job()
    jobs.script = [twice]
    runner.run(key_id=key_of(operation).id)

    assert key_of(operation).state == "completed"
    assert Operation.objects.filter(name="test.guarded").count() == 2


def test_r40_deferring_inside_deferred_work_waits_for_its_commit(caller: Caller) -> None:
    def defer_and_fail(claim: Any) -> None:
        defer("test.guarded", {"n": 1})
        raise TemporaryFailure

    operation = caller.job()
    jobs.script = [defer_and_fail]
    runner.run()
    assert Operation.objects.filter(name="test.guarded").count() == 0
    assert work_of(operation).attempts == 1


@pytest.mark.parametrize("given", [object(), float("nan"), {"a": {1, 2}}])
def test_the_input_must_be_json(given: Any) -> None:
    with pytest.raises(Misuse, match="plain JSON"):
        defer("test.job", given)


def test_an_operation_must_be_registered() -> None:
    with pytest.raises(Misuse, match="No handler"):
        defer("test.nothing", {})


def test_r31_a_new_life_of_a_key_has_work_of_its_own(caller: Caller) -> None:
    first = caller.job(key="k1")
    runner.run()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE idempotency_key SET settled_at = settled_at - interval '31 days'")

    second = caller.job(key="k1")

    assert second != first
    assert caller.look(first).status_code == 410
    runner.run()
    assert caller.look(second).json()["result"] == {"did": 1}


def test_r13_a_twin_does_not_wait_for_who_begins_a_new_life(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = caller.job(1, key="k1")
    make_due(operation)
    runner.run()
    pass_time(2_592_001)
    running, answered = threading.Event(), threading.Event()

    def slow(**given: Any) -> Any:
        running.set()
        assert answered.wait(30), "the twin waited for the first"
        return accept(**given)

    def first_one() -> Any:
        try:
            return caller.post("/jobs/", body, key="k1")
        finally:
            connection.close()

    body = {"operation": "test.job", "input": 1}
    monkeypatch.setattr(deferring, "accept", slow)
    try:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(first_one)
            assert running.wait(30)
            twin = caller.post("/jobs/", body, key="k1")
            answered.set()
            assert first.result(30).status_code == 202
    finally:
        answered.set()
    assert (twin.status_code, twin.json()["code"]) == (409, "in-progress")
