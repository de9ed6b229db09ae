"""ENCRYPTION_KEYS: what is stored of answers and calls cannot be read in the database, and is replayed all the same."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.checks import CheckMessage
from django.db import connection
from django.db.models.functions import Now

from idempotency.checks import check_settings
from idempotency.exceptions import CallUnknown
from idempotency.ledger import sealing
from idempotency.models import Key, Operation, Step
from idempotency.operations import runner, wake
from idempotency.reconciliation import reconcile
from idempotency.types import Applied, OutsideResult
from tests.support.deferring import jobs
from tests.support.host import other_side

Post = Callable[..., Any]
pytestmark = pytest.mark.django_db(transaction=True)
OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))
SECRET = "a-very-secret-name"


@pytest.fixture(autouse=True)
def _host(rest: Post, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.ROOT_URLCONF = "tests.support.host"
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [OLD]}
    monkeypatch.setattr(wake, "nudge", lambda **_: None)
    other_side.reset()
    jobs.reset()
    yield
    other_side.reset()


def stored() -> str:
    """Return all that the database holds of keys, steps and deferred work, as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT k.body, s.payload, s.result, o.input, o.result FROM idempotency_key k "
            "LEFT JOIN idempotency_step s ON s.key_id = k.id LEFT JOIN idempotency_operation o ON o.key_id = k.id"
        )
        return repr([bytes(v) if isinstance(v, memoryview) else v for v in cursor.fetchone()])


def test_what_is_stored_says_nothing_and_is_replayed(rest: Post) -> None:
    first, again = (rest("/charge/", {"name": SECRET}) for _ in range(2))
    assert first.json()["name"] == SECRET
    assert again.content == first.content
    assert SECRET not in stored()
    assert "gAAAA" in stored()
    assert Step.objects.get().result is not None


def test_r23_a_resumed_call_sends_the_very_bytes_that_were_sealed(rest: Post) -> None:
    other_side.script.append(CallUnknown("lost"))
    assert rest("/charge/", {"name": SECRET}).status_code == 504
    other_side.lookup = Applied(OutsideResult(reference="r-1", record={"name": SECRET}))
    reconcile(key_id=Key.objects.get().id)
    again = rest("/charge/", {"name": SECRET})
    assert (again.status_code, again.json()["reference"]) == (201, "r-1")
    assert "r-1" not in json.dumps(Step.objects.get().result)


def test_deferred_work_gets_its_input_and_gives_its_result(rest: Post, settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.support.deferring"
    promised = rest("/jobs/", {"operation": "test.job", "input": {"name": SECRET}})
    runner.run(key_id=Key.objects.get().id)
    assert jobs.runs == [{"name": SECRET}]
    assert SECRET not in stored()
    assert list(Operation.objects.get().input) == ["~sealed"]
    assert promised.status_code == 202


@pytest.mark.parametrize("keys", [[], [NEW]])
@pytest.mark.parametrize(
    "given", [{"~sealed": "x"}, {"~sealed": "", "~plain": 1}, {"~sealed": 1, "b": 2}, ["~sealed"]]
)
def test_what_a_caller_makes_look_sealed_is_what_the_work_gets(
    rest: Post, settings: Any, keys: list[str], given: Any
) -> None:
    settings.ROOT_URLCONF = "tests.support.deferring"
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": keys}
    rest("/jobs/", {"operation": "test.job", "input": given})
    runner.drain()
    assert jobs.runs == [given]


@pytest.mark.parametrize("keys", [(), (NEW,)])
@pytest.mark.parametrize("plain", [b"", b"\0sealed\0x", b"\0plain\0", b"\0plain\0\0sealed\0"])
def test_nor_do_bytes_that_look_sealed_become_others(
    settings: Any, keys: tuple[str, ...], plain: bytes
) -> None:
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": keys}
    assert sealing.unseal(sealing.seal(plain)) == plain


def test_keys_are_rotated_by_putting_a_new_one_first(rest: Post, settings: Any) -> None:
    first = rest("/charge/", {"name": SECRET})
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [NEW, OLD]}
    assert rest("/charge/", {"name": SECRET}).content == first.content
    second = rest("/charge/", {"name": "other"}, key="k2")
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [NEW]}
    assert rest("/charge/", {"name": "other"}, key="k2").content == second.content


def test_what_was_stored_before_there_were_keys_is_read_as_it_is(rest: Post, settings: Any) -> None:
    settings.IDEMPOTENCY = {}
    first = rest("/charge/", {"name": SECRET})
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [NEW]}
    assert rest("/charge/", {"name": SECRET}).content == first.content


def test_r17_a_lost_key_is_loud_and_runs_nothing_again(rest: Post, settings: Any) -> None:
    rest("/charge/", {"name": SECRET})
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [NEW]}
    assert rest("/charge/", {"name": SECRET}).status_code == 500
    assert len(other_side.effects) == 1


def test_r32_deferred_work_waits_for_a_process_that_has_its_key_and_holds_up_no_other(
    rest: Post, settings: Any
) -> None:
    """As while a new key is rolled out: who has it already promises what others cannot read yet."""
    settings.ROOT_URLCONF = "tests.support.deferring"
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [NEW, OLD]}
    rest("/jobs/", {"operation": "test.job", "input": "new"})
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [OLD]}
    rest("/jobs/", {"operation": "test.job", "input": "old"}, key="k2")
    runner.drain()
    assert jobs.runs == ["old"]
    waiting = Operation.objects.get(key__state="in_progress")
    assert (waiting.attempts, "ENCRYPTION_KEYS" in waiting.last_error) == (0, True)
    assert waiting.key.due_at is not None

    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [NEW, OLD]}
    runner.run(key_id=waiting.key.id)
    assert jobs.runs == ["old"]
    Key.objects.filter(id=waiting.key.id).update(due_at=Now())
    runner.drain()
    assert jobs.runs == ["old", "new"]


def ids(messages: list[CheckMessage]) -> set[str | None]:
    return {message.id for message in messages}


def test_a_key_that_is_none_is_refused_by_a_check(settings: Any) -> None:
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": ["not-a-key"]}
    assert "idempotency.E014" in ids(check_settings())
    assert "not-a-key" not in repr(check_settings())
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [OLD]}
    assert "idempotency.E014" not in ids(check_settings())
