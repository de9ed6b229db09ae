"""A claim's row is written with the first thing that is worth keeping, and by one claimant only (R4, R8, R13, R15)."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models.signals import post_save
from django.test.utils import CaptureQueriesContext

from idempotency.ledger import draft, settlement
from idempotency.ledger.claim import current_claim
from idempotency.ledger.phases import phase
from idempotency.ledger.values import Settlement
from idempotency.models import Key
from idempotency.types import Answer
from tests.integration.core.conftest import Caller
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def within_the_handler(do: Callable[[], None]) -> Iterator[None]:
    """Have it done inside the handler, once its effect is made."""

    def receive(sender: object, **_: object) -> None:
        do()

    post_save.connect(receive, sender=Group)
    try:
        yield
    finally:
        post_save.disconnect(receive, sender=Group)


def kinds(captured: CaptureQueriesContext) -> list[str]:
    """Say what each statement is, of those that concern the ledger or the transaction."""
    found = []
    for query in captured.captured_queries:
        sql = query["sql"].strip()
        if "idempotency_key" in sql:
            found.append("claim" if "idempotency_take" in sql else "write")
        elif sql.split()[0] in ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK"):
            found.append(sql.split()[0])
    return found


@contextmanager
def somebody_else_answers() -> Iterator[None]:
    """Write another answer under the same identity while the handler runs: by hand, without asking for the lock."""

    def write() -> None:
        claim = current_claim()
        assert claim is not None
        assert claim.draft is not None
        theirs = draft.Draft(uuid.uuid4(), claim.identity, claim.draft.fingerprint)
        with phase(using="default") as phases:
            assert settlement.complete(
                connection=phases.connection,
                key_id=theirs.id,
                token=1,
                answer=Answer(status=201, body=b'{"theirs":1}', content_type="application/json"),
                settlement=Settlement(by="test"),
                called=False,
                draft=theirs,
            )

    def elsewhere() -> None:
        context = copy_context()

        def run() -> None:
            try:
                context.run(write)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(run).result(30)

    with within_the_handler(elsewhere):
        yield


def test_r8_a_local_handler_costs_two_statements_and_one_commit(caller: Caller, key: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201
    # Django's `create` opens a transaction of its own around one row: a savepoint of the handler's.
    ours = [kind for kind in kinds(captured) if kind not in ("SAVEPOINT", "RELEASE")]
    assert ours == ["BEGIN", "claim", "write", "COMMIT"]
    assert kinds(captured).count("SAVEPOINT") <= 1


def test_r16_a_replay_reads_once_and_writes_nothing(
    caller: Caller, key: str, settings: Any
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "RECORD_REPLAYS": False}
    caller.post("/local/", {"name": "a"}, key=key)
    with CaptureQueriesContext(connection) as captured:
        assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201
    assert kinds(captured) == ["BEGIN", "claim", "COMMIT"]


def test_r16_a_replay_leaves_what_its_connection_has_prepared(caller: Caller, key: str) -> None:
    """At a ROLLBACK psycopg forgets its prepared statements, and the next requests prepare them anew."""
    for _ in range(8):
        assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%idempotency_take%'"
        )
        # None behind a pooler, where nothing is prepared.
        prepares = connection.settings_dict["OPTIONS"]["prepare_threshold"] is not None
        assert cursor.fetchone() == (int(prepares),)


def test_r13_an_outside_call_costs_two_commits(caller: Caller, key: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    ours = [kind for kind in kinds(captured) if kind not in ("SAVEPOINT", "RELEASE")]
    assert ours == ["BEGIN", "claim", "write", "COMMIT", "BEGIN", "write", "write", "COMMIT"]


@pytest.mark.parametrize("kind", ["ok", "too-poor"])
def test_r15_the_constraint_decides_even_without_the_lock(
    caller: Caller, key: str, kind: str
) -> None:
    body = {"name": "mine"} | ({} if kind == "ok" else {"kind": kind})
    with somebody_else_answers():
        answer = caller.post("/local/", body, key=key)

    assert (answer.status_code, answer.json()) == (201, {"theirs": 1})
    assert answer["Idempotent-Replayed"] == "true"
    assert not Group.objects.exists(), "the loser's effects are undone"
    assert Key.objects.get().settled_by == "test"


def test_r12_nothing_is_sent_where_another_has_the_key(caller: Caller, key: str) -> None:
    with somebody_else_answers():
        answer = caller.post("/charge/", {"name": "mine"}, key=key)

    assert answer.json() == {"theirs": 1}
    assert other_side.requests == []
    assert not Group.objects.exists()


def test_r15_a_row_that_the_handlers_own_savepoint_undid_is_written_with_the_answer(
    caller: Caller, key: str
) -> None:
    def need_the_row_in_vain() -> None:
        claim = current_claim()
        assert claim is not None
        with suppress(ZeroDivisionError), transaction.atomic():
            claim.require_key()
            assert Key.objects.exists()
            raise ZeroDivisionError

    with within_the_handler(need_the_row_in_vain):
        assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201

    assert Key.objects.get().state == "completed"
    assert caller.post("/local/", {"name": "a"}, key=key)["Idempotent-Replayed"] == "true"
    assert Group.objects.count() == 1


def test_r8_the_second_look_sees_what_was_committed_since_the_statement_began(
    caller: Caller, key: str
) -> None:
    """The holder of the lock commits and lets it go between a twin's snapshot and the twin's turn."""
    barrier, free = 4_242, 4_243
    waits = threading.Event()

    def look() -> tuple[int, bool]:
        with connection.cursor() as cursor:
            waits.set()
            cursor.execute(
                """
                WITH before AS MATERIALIZED (SELECT count(*) AS seen FROM idempotency_key),
                turn AS MATERIALIZED (SELECT pg_advisory_lock(%s)::text AS mine, seen FROM before)
                SELECT seen, idempotency_take(%s, %s, %s, %s) FROM turn WHERE mine IS NOT NULL
                """,
                [barrier, free, key, scope, operation],
            )
            row: tuple[int, bool] = cursor.fetchone()
        connection.close()
        return row

    caller.post("/local/", {"name": "first"}, key="another")
    scope, operation = Key.objects.values_list("scope", "operation").get()
    Key.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [barrier])
    with ThreadPoolExecutor(1) as pool:
        twin = pool.submit(look)
        assert waits.wait(30)
        _until_somebody_waits()
        assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [barrier])
        assert twin.result(30) == (0, False)


def _until_somebody_waits() -> None:
    with connection.cursor() as cursor:
        for _ in range(10_000):
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            )
            if cursor.fetchone()[0]:
                return
    raise AssertionError("nobody waits")
