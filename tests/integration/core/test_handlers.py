"""What a host's handler may do, by mistake or not: nothing of it makes the ledger tell what is not so."""

import contextlib
import logging
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.http import StreamingHttpResponse
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency import reconciliation
from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.exceptions import CallRejected, CallUnknown
from idempotency.models import Key, Sender, Step
from idempotency.testing import pass_time
from idempotency.types import Applied, OutsideRequest, OutsideResult
from tests.integration.core.conftest import Caller
from tests.integration.core.test_database_fails import commit_fails
from tests.support import host
from tests.support.host import KEYED, UNKEYED, ChargeResolver, other_side, outside

pytestmark = pytest.mark.django_db(transaction=True)

Handle = Callable[[Any], Any]
_handlers: list[Handle] = []


class Handled(APIView):
    @idempotent(operation="test.handled")
    def post(self, request: IdempotentRequest) -> Any:
        return _handlers[-1](request)


urlpatterns = [path("handled/", Handled.as_view()), *host.urlpatterns]


@pytest.fixture(autouse=True)
def _urls(settings: Any, _host: None) -> None:
    settings.ROOT_URLCONF = __name__


def write() -> None:
    Group.objects.create(name="effect")


def write_and_answer(_: Any) -> Response:
    write()
    return Response(status=201)


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_r14_a_block_that_is_left_open_is_no_success(
    caller: Caller, key: str, calls: bool, fails: bool
) -> None:
    """Begun in a generator that waits to be read: what the handler wrote would never be committed."""

    def leave_open(request: Any) -> StreamingHttpResponse:
        if calls:
            outside(request.claim)

        def rows() -> Generator[bytes, None, None]:
            with transaction.atomic():
                write()
                yield b"row"

        kept.append(rows())
        first = next(kept[-1])
        if fails:
            raise ValueError
        return StreamingHttpResponse([first])

    kept: list[Generator[bytes, None, None]] = []
    _handlers.append(leave_open)
    assert caller.post("/handled/", key=key).status_code == (504 if calls else 500)
    assert not connection.in_atomic_block
    assert not Group.objects.exists()
    assert [row.state for row in Key.objects.all()] == (["unknown"] if calls else [])

    kept[0].close()
    _handlers.append(write_and_answer)
    assert caller.post("/handled/", key=f"{key}-2").status_code == 201
    assert Group.objects.exists()


def test_r14_without_a_key_too_a_swallowed_database_error_is_no_success(caller: Caller) -> None:
    """The server answers the COMMIT of such a transaction with a rollback, and without an error."""

    def swallow(_: Any) -> Response:
        write()
        with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return Response(status=201)

    _handlers.append(swallow)
    assert caller.post("/handled/").status_code == 500
    assert not Group.objects.exists()


@pytest.mark.parametrize("calls", [False, True])
def test_r15_a_function_of_on_commit_that_fails_undoes_no_answer(
    caller: Caller, key: str, caplog: pytest.LogCaptureFixture, calls: bool
) -> None:
    followed: list[str] = []

    def follow(_: Any) -> Response:
        transaction.on_commit(lambda: 1 / 0)
        transaction.on_commit(lambda: followed.append("first"))
        if calls:
            outside(_.claim)
        write()
        transaction.on_commit(lambda: Group.objects.create(name="effect"))
        transaction.on_commit(lambda: followed.append("second"))
        return Response(status=201)

    _handlers.append(follow)
    with caplog.at_level(logging.ERROR, "idempotency"):
        answers = [caller.post("/handled/", key=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert followed == ["first", "second"]
    told = [record for record in caplog.records if "on_commit" in record.getMessage()]
    assert [type(record.exc_info[1]).__name__ for record in told if record.exc_info] == [
        "ZeroDivisionError",
        "IntegrityError",
    ]
    assert Group.objects.count() == 1


def test_r14_a_step_that_is_called_twice_is_never_answered_by_its_first_call(
    caller: Caller, key: str
) -> None:
    def charge_twice(request: Any) -> Response:
        for amount in (1, 2):
            request.claim.outside_call(
                step="charge", request={"amount": amount}, send=other_side.send, downstream=KEYED
            )
        return Response(status=201)

    _handlers.append(charge_twice)
    answers = [caller.post("/handled/", key=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [504, 504]
    assert (Key.objects.get().state, len(other_side.effects)) == ("unknown", 1)


def test_r14_what_is_no_response_is_an_error_like_any_other(caller: Caller, key: str) -> None:
    _handlers.append(lambda request: outside(request.claim))
    assert caller.post("/handled/", key=key).status_code == 504
    row = Key.objects.get()
    assert (row.state, row.unfinished, Sender.objects.get().ending) == ("unknown", True, "applied")

    _handlers.append(lambda _: None)
    assert caller.post("/handled/", key="another").status_code == 500
    assert Key.objects.count() == 1


@pytest.mark.parametrize("after", [False, True])
def test_r14_who_swallows_the_loss_of_the_transaction_has_not_succeeded(
    caller: Caller, key: str, after: bool
) -> None:
    """Whether or not the intent was kept, nothing of the answer can be."""

    def swallow(request: Any) -> Response:
        with contextlib.suppress(Exception):
            outside(request.claim)
        return Response({"queued": True}, status=201)

    _handlers.append(swallow)
    connection.ensure_connection()
    with commit_fails(after=after):
        assert caller.post("/handled/", key=key).status_code == 503
    assert other_side.effects == []
    assert caller.post("/handled/", key=key).status_code == 201
    assert len(other_side.effects) == 1


@pytest.mark.parametrize("use", [outside, lambda claim: claim.require_key()])
def test_r13_a_claim_is_refused_in_another_thread_before_anything_is_sent_or_written(
    caller: Caller, key: str, use: Callable[[Any], Any]
) -> None:
    """Its connection is another one: what it wrote there would be committed by itself."""

    def elsewhere(request: Any) -> Response:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(use, request.claim).result()
        return Response(status=201)

    _handlers.append(elsewhere)
    assert caller.post("/handled/", key=key).status_code == 500
    assert (other_side.requests, Key.objects.count()) == ([], 0)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def nothing(request: OutsideRequest) -> Any:
    other_side.send(request)


def unspeakable(request: OutsideRequest) -> Any:
    other_side.send(request)
    raise Unspeakable


@pytest.mark.parametrize("send", [nothing, unspeakable])
def test_r14_what_a_sender_does_wrong_after_its_send_is_never_nothing(
    caller: Caller, key: str, send: Callable[[OutsideRequest], Any]
) -> None:
    def charge(request: Any) -> Response:
        request.claim.outside_call(step="charge", request={}, send=send, downstream=UNKEYED)
        return Response(status=201)

    other_side.keyed = False
    _handlers.append(charge)
    answers = [caller.post("/handled/", key=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [504, 409]
    assert (Key.objects.get().state, len(other_side.effects)) == ("unknown", 1)


UNSTORABLE = ["a\x00b", "a\ud800b", float("nan"), Decimal("1.50"), uuid.UUID(int=1)]
"""What a gateway, or who reads its answer, may hand over; no column of PostgreSQL holds it as it is."""


@pytest.mark.parametrize("value", UNSTORABLE, ids=repr)
def test_r22_no_value_of_an_answer_keeps_the_effect_off_the_record(
    caller: Caller, key: str, value: Any
) -> None:
    def charge(request: Any) -> Response:
        result = request.claim.outside_call(
            step="charge", request={}, send=answer_with, downstream=KEYED
        )
        request.claim.link(summary=str(value), reference=str(value), resource=f"/{value}/")
        return Response({"reference": result.reference}, status=201)

    def answer_with(request: Any) -> OutsideResult:
        other_side.send(request)
        return OutsideResult("ref-1", {"said": [value], str(value): 1})

    _handlers.append(charge)
    answers = [caller.post("/handled/", key=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert (Key.objects.get().state, Sender.objects.get().ending) == ("completed", "applied")
    assert "said" in (Step.objects.get().result or {})


@pytest.mark.parametrize("word", ["no\x00money", "no\ud800money"])
def test_r22_no_word_of_a_refusal_keeps_it_off_the_record(
    caller: Caller, key: str, word: str
) -> None:
    other_side.script.append(CallRejected(word, reference=word, record={"why": word}))
    answers = [caller.post("/charge/", {"name": "a"}, key=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [402, 402]
    assert Sender.objects.get().ending == "rejected"


def test_r36_nor_does_it_keep_a_look_up_off_the_record(caller: Caller, key: str) -> None:
    other_side.script.append(CallUnknown("lo\x00st"))
    caller.post("/charge/", {"name": "a"}, key=key)
    other_side.lookup = Applied(OutsideResult("ref\x00", {"said": "\x00", "n": float("inf")}))
    pass_time(6)
    assert [report.decision for report in reconciliation.run()] == ["applied"]
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201


def test_r38_nor_a_person_from_being_called(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: Any, **__: Any) -> None:
        raise RuntimeError("bro\x00ken")

    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    monkeypatch.setattr(ChargeResolver, "finish", break_off)
    pass_time(6)
    assert [report.decision for report in reconciliation.run()] == ["needs-person"]
    assert (
        Key.objects.get().needs_person_reason == "It cannot be finished: RuntimeError: bro\ufffdken"
    )
