"""Under a stricter isolation than READ COMMITTED a snapshot is older than what it meets (R8, A10)."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, connections
from psycopg import IsolationLevel

from idempotency import reconciliation
from idempotency.models import Key
from idempotency.testing import pass_time, together
from tests.integration.core.conftest import Caller
from tests.integration.core.test_races import sends
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5


@pytest.fixture(autouse=True, params=[IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def _strict(request: Any, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[None]:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "isolation_level", request.param)
    connections.close_all()
    yield
    monkeypatch.undo()
    connections.close_all()


@pytest.mark.parametrize("path", ["/local/", "/charge/"])
def test_r8_of_many_at_once_one_runs_and_nobody_gets_a_5xx(caller: Caller, path: str) -> None:
    for number in range(ROUNDS):
        key = f"{path}{number}"
        answers = together(6, sends(caller, path, {"name": key}, key))
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert Key.objects.filter(state="completed").count() == ROUNDS
    assert len(other_side.effects) == (ROUNDS if path == "/charge/" else 0)


def test_r20_one_of_many_begins_a_new_life(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "first"}, key=key)
    pass_time(2_592_001)
    answers = together(6, sends(caller, "/local/", {"name": "second"}, key))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert Group.objects.filter(name="second").count() == 1


def test_r36_a_lost_answer_is_found(caller: Caller, key: str) -> None:
    other_side.script.append("apply-and-lose")
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 504
    pass_time(6)
    assert [report.decision for report in reconciliation.run()] == ["applied"]
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
