"""The database fails (R19; K6): never run unprotected, never told a success that is not stored."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import connection

from idempotency import reconciliation
from idempotency.exceptions import CallRejected
from idempotency.models import Key, Sender, Step
from idempotency.testing import pass_time
from tests.integration.core.conftest import Caller
from tests.support.databases import login
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


def kill_own_backend() -> None:
    """End the server process behind this thread's connection, from another connection."""
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(**login(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
            pass


@contextmanager
def on_save(does: Callable[[Group], None]) -> Iterator[None]:
    from django.db.models.signals import post_save

    def receiver(sender: type, instance: Group, **_: object) -> None:
        does(instance)

    post_save.connect(receiver, sender=Group, weak=False)
    try:
        yield
    finally:
        post_save.disconnect(receiver, sender=Group)


@contextmanager
def ledger_gone() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE idempotency_key RENAME TO idempotency_key_gone")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE idempotency_key_gone RENAME TO idempotency_key")


def test_k6_without_the_ledger_nothing_runs(caller: Caller, key: str) -> None:
    with ledger_gone():
        answer = caller.post("/local/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (503, "ledger-unavailable")
    assert int(answer["Retry-After"]) >= 1
    assert not Group.objects.exists()
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201


def test_r19_what_keeps_the_ledger_from_answering_is_in_the_log(
    caller: Caller, key: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller is told that it cannot be reached, which may be a table or a secret that is not there."""
    settings.IDEMPOTENCY = settings.IDEMPOTENCY | {"FINGERPRINT_SECRETS": {"old": "o" * 32}}
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201
    settings.IDEMPOTENCY = settings.IDEMPOTENCY | {"FINGERPRINT_SECRETS": {"new": "n" * 32}}
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 503
    assert "'old' is not configured any more" in caplog.text
    with ledger_gone():
        assert caller.post("/local/", {"name": "b"}, key="k2").status_code == 503
    assert 'relation "idempotency_key" does not exist' in caplog.text
    assert Group.objects.count() == 1


def test_r19_a_connection_lost_in_a_local_handler_leaves_nothing(caller: Caller, key: str) -> None:
    with on_save(lambda _: kill_own_backend()):
        answer = caller.post("/local/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (503, "ledger-unavailable")
    assert not Group.objects.exists()
    assert not Key.objects.exists()
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201


def test_r19_a_connection_lost_during_the_call_does_not_lose_its_ending(
    caller: Caller, key: str
) -> None:
    other_side.script.append(kill_own_backend)
    answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert answer.status_code == 201
    assert Key.objects.get().state == "completed"
    assert len(other_side.effects) == 1


def test_r19_a_connection_lost_after_the_call_keeps_the_ending_and_says_unknown(
    caller: Caller, key: str
) -> None:
    def kill_after(group: Group) -> None:
        if group.name == "a-done":
            kill_own_backend()

    with on_save(kill_after):
        answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (504, "outcome-unknown")
    row = Key.objects.get()
    assert (row.state, row.unfinished) == ("unknown", True)
    assert Sender.objects.get().ending == "applied"
    assert Step.objects.get().result == {"status": "succeeded"}
    pass_time(6)
    assert [report.decision for report in reconciliation.run()] == ["applied"]
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert len(other_side.effects) == 1


def test_r19_a_handler_that_closes_its_connection_loses_no_ending(caller: Caller, key: str) -> None:
    """As a library does that means it well; the next transaction of this thread begins on a new one."""

    def close_after(group: Group) -> None:
        if group.name == "a-done":
            connection.close()

    with on_save(close_after):
        answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (504, "outcome-unknown")
    assert Key.objects.get().state == "unknown"
    assert Sender.objects.get().ending == "applied"
    assert caller.post("/local/", {"name": "b"}, key="b").status_code == 201


@contextmanager
def commit_fails(
    *, after: bool, number: int = 1, then: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Lose the connection at the n-th COMMIT: before it reached the server, or after it was carried out."""
    kind = connection.connection.__class__
    original, seen = kind.commit, []

    def commit(self: Any) -> None:
        seen.append(1)
        if len(seen) == number:
            if after:
                original(self)
            self.close()
            then()
            raise psycopg.OperationalError("the connection was lost during COMMIT")
        original(self)

    kind.commit = commit
    try:
        yield
    finally:
        kind.commit = original


def test_r19_a_lost_acknowledgement_is_looked_up_not_guessed(caller: Caller, key: str) -> None:
    connection.ensure_connection()
    with commit_fails(after=True):
        answer = caller.post("/local/", {"name": "a"}, key=key)
    assert answer.status_code == 201
    assert Group.objects.count() == 1
    again = caller.post("/local/", {"name": "a"}, key=key)
    assert (again.content, again["Idempotent-Replayed"]) == (answer.content, "true")


def test_r19_a_commit_that_never_arrived_happened_not(caller: Caller, key: str) -> None:
    connection.ensure_connection()
    with commit_fails(after=False):
        answer = caller.post("/local/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (503, "ledger-unavailable")
    assert not Group.objects.exists()
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201


def test_r19_a_commit_of_which_nobody_can_tell_is_never_called_nothing(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its acknowledgement is lost, and its locks are held on, as by one that waits for a standby."""
    monkeypatch.setattr("idempotency.execution._PATIENCE", 0.1)
    with psycopg.connect(**login()) as waits:

        def hold() -> None:
            waits.execute("LOCK TABLE idempotency_key IN EXCLUSIVE MODE")

        connection.ensure_connection()
        with commit_fails(after=True, then=hold):
            answer = caller.post("/local/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (504, "outcome-unknown")
    again = caller.post("/local/", {"name": "a"}, key=key)
    assert (again.status_code, again["Idempotent-Replayed"]) == (201, "true")
    assert Group.objects.count() == 1


def test_r19_a_lost_acknowledgement_without_a_key_is_unknown(caller: Caller) -> None:
    """No row could tell: the effect is there, and must not be called nothing."""
    connection.ensure_connection()
    with commit_fails(after=True):
        answer = caller.post("/keyless/")
    assert (answer.status_code, answer.json()["code"]) == (504, "outcome-unknown")
    assert "operation_ref" not in answer.json()
    assert Group.objects.count() == 1


def test_r19_a_verdict_that_was_not_kept_is_not_told(caller: Caller, key: str) -> None:
    body = {"name": "a", "kind": "conflict"}
    connection.ensure_connection()
    with commit_fails(after=False):
        assert caller.post("/local/", body, key=key).status_code == 503
    assert caller.post("/local/", body, key=key).status_code == 409
    assert Key.objects.get().state == "completed"


@pytest.mark.parametrize("after", [True, False])
def test_r19_a_refusal_that_is_told_is_the_one_that_is_kept(
    caller: Caller, key: str, after: bool
) -> None:
    other_side.script.append(CallRejected("no", code="card_declined"))
    connection.ensure_connection()
    with commit_fails(after=after, number=2):
        first = caller.post("/charge/", {"name": "a"}, key=key)
    again = caller.post("/charge/", {"name": "a"}, key=key)
    assert (first.status_code, again.status_code) == (402, 402)
    assert again.content == first.content
    assert (Key.objects.get().state, other_side.effects) == ("completed", [])


@pytest.mark.parametrize("path", ["/local/", "/charge/"])
def test_r24_a_server_that_takes_no_writes_is_an_outage_and_left(
    caller: Caller, key: str, path: str
) -> None:
    """A primary that was demoted: the next request must reach another one."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    answer = caller.post(path, {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (503, "ledger-unavailable")
    assert caller.post(path, {"name": "a"}, key=key).status_code == 201


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_r19_whichever_commit_of_a_charge_is_lost_it_is_charged_once(
    caller: Caller, key: str, number: int, after: bool
) -> None:
    connection.ensure_connection()
    with commit_fails(after=after, number=number):
        answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert answer.status_code in (201, 503, 504), answer.content
    if answer.status_code == 201:
        assert len(other_side.effects) == 1
    pass_time(100)
    reconciliation.run()
    pass_time(100)
    final = caller.post("/charge/", {"name": "a"}, key=key)
    assert final.status_code == 201
    assert len(other_side.effects) == 1
    assert Key.objects.get().state == "completed"
    assert Group.objects.filter(name="a-done").count() == 1


def test_r13_the_server_ends_a_phase_of_a_frozen_process(
    caller: Caller, key: str, settings: Any
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "REQUEST_BUDGET": 0.2}
    frozen = threading.Event()

    def freeze(_: Group) -> None:
        # As long as the server has not ended the phase; then the next statement fails.
        pid = connection.connection.info.backend_pid
        with psycopg.connect(**login(), autocommit=True) as other:
            while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone():
                pass
        frozen.set()

    with on_save(freeze):
        answer = caller.post("/local/", {"name": "a"}, key=key)
    assert frozen.is_set()
    assert answer.status_code == 503
    assert not Group.objects.exists()
    assert not Key.objects.exists()
