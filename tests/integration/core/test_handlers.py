"""What a host's handler may do, by mistake or not: nothing of it makes the ledger tell what is not so."""

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.models import Key, Sender
from tests.integration.core.conftest import Caller
from tests.support.host import KEYED, other_side, outside

pytestmark = pytest.mark.django_db(transaction=True)

Handle = Callable[[Any], Any]
_handlers: list[Handle] = []


class Handled(APIView):
    @idempotent(operation="test.handled")
    def post(self, request: IdempotentRequest) -> Any:
        return _handlers[-1](request)


urlpatterns = [path("handled/", Handled.as_view())]


@pytest.fixture(autouse=True)
def _urls(settings: Any, _host: None) -> None:
    settings.ROOT_URLCONF = __name__


def write() -> None:
    Group.objects.create(name="effect")


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
