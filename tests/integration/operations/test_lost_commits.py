"""An interrupted COMMIT is ambiguous: it is read again on a new connection, never repeated blindly (R19, R35).

Each test loses the nth COMMIT of one run on the wire, in both ways: the server never sees it, or its reply is lost.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection

from idempotency import reconciliation
from idempotency.exceptions import TemporaryFailure
from idempotency.execution import Free, Settled
from idempotency.models import Operation
from idempotency.operations import runner
from tests.integration.operations.conftest import (
    Caller,
    key_of,
    let_lapse,
    let_look_up,
    make_due,
    work_of,
)
from tests.support.deferring import jobs
from tests.support.host import other_side
from tests.support.proxy import Proxy, What

pytestmark = pytest.mark.django_db(transaction=True)
TAKE, FINISH = 1, 2


@pytest.fixture
def proxy(caller: Caller) -> Iterator[Proxy]:
    """Lead this test's connection through a proxy."""
    at = connection.settings_dict
    before = at["HOST"], at["PORT"]
    with Proxy(at["HOST"] or "127.0.0.1", int(at["PORT"])) as proxy:
        connection.close()
        at["HOST"], at["PORT"] = "127.0.0.1", str(proxy.port)
        try:
            yield proxy
        finally:
            connection.close()
            at["HOST"], at["PORT"] = before


def recover(operation: str) -> None:
    """Let everything go on that looks after broken runs."""
    let_lapse(operation)
    let_look_up()
    reconciliation.run()
    if key_of(operation).due_at is not None:
        make_due(operation)
        runner.run()


def test_a_lost_take_that_committed_is_gone_on_with(caller: Caller, proxy: Proxy) -> None:
    operation = caller.job()
    proxy.lose(nth=TAKE, what="reply")

    assert isinstance(runner.run(), Settled)

    assert (proxy.lost, key_of(operation).state) == (1, "completed")
    assert (work_of(operation).attempts, len(jobs.runs), Group.objects.count()) == (1, 1, 1)


def test_a_lost_take_that_did_not_commit_spends_nothing(caller: Caller, proxy: Proxy) -> None:
    operation = caller.job()
    proxy.lose(nth=TAKE, what="request")

    with pytest.raises(OperationalError):
        runner.run()

    assert proxy.lost == 1
    assert (key_of(operation).state, work_of(operation).attempts) == ("in_progress", 0)
    assert isinstance(runner.run(), Settled)


def test_a_lost_finish_that_committed_is_settled(caller: Caller, proxy: Proxy) -> None:
    operation = caller.job()
    proxy.lose(nth=FINISH, what="reply")

    assert isinstance(runner.run(), Settled)

    assert (proxy.lost, key_of(operation).state) == (1, "completed")
    assert (work_of(operation).result, Group.objects.count()) == ({"did": 1}, 1)


def test_a_lost_finish_that_did_not_commit_has_no_effect_and_runs_again(
    caller: Caller, proxy: Proxy
) -> None:
    operation = caller.job()
    proxy.lose(nth=FINISH, what="request")
    runner.run()
    assert (proxy.lost, Group.objects.count()) == (1, 0)

    recover(operation)

    assert (key_of(operation).state, Group.objects.count()) == ("completed", 1)
    assert work_of(operation).attempts == 2


@pytest.mark.parametrize("what", ["request", "reply"])
def test_a_lost_rescheduling(caller: Caller, proxy: Proxy, what: What) -> None:
    operation = caller.job()
    jobs.script = [TemporaryFailure("busy")]
    proxy.lose(nth=FINISH, what=what)
    runner.run()
    assert proxy.lost == 1

    recover(operation)

    assert (key_of(operation).state, Group.objects.count()) == ("completed", 1)
    assert work_of(operation).attempts == 2


@pytest.mark.parametrize("what", ["request", "reply"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_an_effect_outside_happens_once_whatever_is_lost(
    caller: Caller, proxy: Proxy, nth: int, what: What
) -> None:
    operation = caller.job({"n": 1}, path="/transfers/")
    proxy.lose(nth=nth, what=what)
    try:
        runner.run()
    except OperationalError:
        runner.run()
    assert proxy.lost == 1

    if key_of(operation).state != "completed":
        recover(operation)

    assert key_of(operation).state == "completed"
    assert len(other_side.effects) == 1
    assert Group.objects.filter(name__endswith="-done").count() == 1
    assert work_of(operation).result is not None


@pytest.mark.parametrize("what", ["request", "reply"])
def test_r31_a_lost_promise_is_made_once(caller: Caller, proxy: Proxy, what: What) -> None:
    body = {"operation": "test.job", "input": 1}
    proxy.lose(nth=1, what=what)
    first = caller.post("/jobs/", body, key="k1")
    assert proxy.lost == 1
    assert first.status_code == (202 if what == "reply" else 503)

    again = caller.post("/jobs/", body, key="k1")

    assert again.status_code == 202
    assert Operation.objects.count() == 1
    assert isinstance(runner.run(), Settled | Free)
    assert Group.objects.count() == 1


def test_the_proxy_itself_changes_nothing(caller: Caller, proxy: Proxy) -> None:
    answers: list[Any] = [caller.look(caller.job()).status_code for _ in range(3)]
    assert (answers, proxy.lost) == ([200] * 3, 0)
