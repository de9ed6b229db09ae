"""A message is a key: processed once, together with its effect (R40)."""

import uuid
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from celery import shared_task
from cryptography.fernet import Fernet
from django.contrib.auth.models import Group
from django.db import connection, transaction

from idempotency.exceptions import CallFailed, CallUnknown, MessageRefused, Misuse
from idempotency.ledger.claim import current_claim
from idempotency.models import Key, Operation
from idempotency.operations import (
    NotNow,
    accept,
    consume,
    defer,
    idempotent_task,
    message_handler,
    run_again,
    wake,
)
from tests.support.host import other_side, outside

pytestmark = pytest.mark.django_db(transaction=True)


def take(message: str = "evt_1", *, then: Callable[[], object] = lambda: None, **more: Any) -> bool:
    with consume("stripe", message, **more) as claim:
        if claim is None:
            return False
        Group.objects.create(name=uuid.uuid4().hex)
        then()
        return True


def _boom() -> None:
    raise RuntimeError("boom")


def _call() -> None:
    claim = current_claim()
    assert claim is not None
    outside(claim)


def test_r40_a_message_counts_once() -> None:
    assert [take(), take(), take("evt_2")] == [True, False, True]
    assert Group.objects.count() == 2
    key = Key.objects.get(key="evt_1")
    assert (key.scope, key.operation, key.state, key.settled_by) == (
        "stripe",
        "inbox",
        "completed",
        "message",
    )


@pytest.mark.parametrize("secrets", [[], [Fernet.generate_key().decode()]], ids=["plain", "sealed"])
def test_a_message_that_was_given_without_its_text_is_not_run_again(
    settings: Any, secrets: list[str]
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "ENCRYPTION_KEYS": secrets}
    seen: list[bytes] = []
    message_handler("of no text")(lambda *, message: seen.append(message))
    with consume("of no text", "m"):
        pass

    with pytest.raises(NotNow, match="not kept"):
        run_again(key_id=Key.objects.get().id, actor="olga", reason="To be sure.")
    assert seen == []


def test_a_message_keeps_what_it_is_about_and_itself_unless_it_is_too_long(settings: Any) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "MAX_RESPONSE_BYTES": 5}
    for name, text in (("short", b"{}"), ("long", b"[1, 2]")):
        with consume("stripe", name, message=text) as claim:
            assert claim is not None
            claim.link(reference="pi_1", summary=f"Event {name}")
    kept = {key.summary: bytes(key.body or b"") for key in Key.objects.filter(reference="pi_1")}
    assert kept == {"Event short": b"{}", "Event long": b""}


def test_r40_sources_do_not_share_ids() -> None:
    take()
    with consume("adyen", "evt_1") as claim:
        assert claim is not None


def test_r40_a_failed_handler_leaves_the_id_free() -> None:
    with pytest.raises(RuntimeError, match="boom"):
        take(then=_boom)
    assert (Key.objects.count(), Group.objects.count()) == (0, 0)
    assert take()


def test_r40_of_many_copies_at_once_one_has_the_effect() -> None:
    copies, start = 8, Barrier(8)
    answers: list[object] = []

    def copy() -> None:
        start.wait()
        try:
            answers.append(take())
        except MessageRefused as refused:
            answers.append(refused.code)
        finally:
            connection.close()

    threads = [Thread(target=copy) for _ in range(copies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers.count(True) == 1
    assert set(answers) <= {True, False, "in-progress"}
    assert Group.objects.count() == 1


def test_r40_an_id_that_stands_for_another_message_is_refused() -> None:
    take(fingerprint=b"one")
    with pytest.raises(MessageRefused) as refused:
        take(fingerprint=b"two")
    assert refused.value.code == "key-reused"


def test_r40_what_it_defers_commits_with_it() -> None:
    def defer_and_fail() -> None:
        defer("test.job", {})
        _boom()

    with pytest.raises(RuntimeError, match="boom"):
        take(then=defer_and_fail)
    assert Operation.objects.count() == 0
    with consume("stripe", "evt_1") as claim:
        assert current_claim() is claim
        defer("test.job", {})
    assert Operation.objects.get().key.scope == "stripe"
    assert current_claim() is None


def test_r31_a_message_has_no_202_to_give() -> None:
    """The work would never be due: nobody waits for a message's key."""

    def promise() -> None:
        claim = current_claim()
        assert claim is not None
        accept(claim=claim, operation="test.job", input={})

    with pytest.raises(Misuse, match="defer"):
        take(then=promise)
    assert (Key.objects.count(), Operation.objects.count()) == (0, 0)


def test_r40_a_message_can_call_outside() -> None:
    other_side.script = [CallFailed("refused"), "apply", "lose"]
    with pytest.raises(CallFailed):
        take(then=_call)
    assert Key.objects.get().state == "released"
    assert take(then=_call)
    assert (Key.objects.get().state, len(other_side.effects)) == ("completed", 1)


def test_r40_an_unknown_message_is_repeated_by_its_sender() -> None:
    other_side.script = ["lose"]
    with pytest.raises(CallUnknown, match="lost"):
        take(then=_call)
    with pytest.raises(MessageRefused) as refused:
        take()
    assert refused.value.code == "outcome-unknown"


def test_r13_a_message_is_not_taken_inside_a_transaction() -> None:
    with pytest.raises(Misuse, match="open transaction"), transaction.atomic():
        take()


@pytest.mark.parametrize("message", ["", "x" * 256, "x\0", "x\ud800"])
def test_an_id_must_fit(message: str) -> None:
    with pytest.raises(Misuse, match="255"):
        take(message)


# -- tasks -------------------------------------------------------------------------------------------------------------


@idempotent_task(key=str)
def capture(order: int) -> str:
    Group.objects.create(name=f"order {order}")
    if order < 0:
        raise ValueError(order)
    return "captured"


def test_r40_a_task_does_its_work_once_per_key() -> None:
    assert [capture(1), capture(1), capture(2)] == ["captured", None, "captured"]
    assert Group.objects.count() == 2
    assert Key.objects.first().scope == f"{__name__}.capture"  # type: ignore[union-attr]


def test_r40_a_task_that_failed_may_run_again() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="-1"):
            capture(-1)
    assert (Key.objects.count(), Group.objects.count()) == (0, 0)


def test_g1_a_second_copy_finds_the_first_running_and_leaves() -> None:
    seen: list[object] = []

    @idempotent_task(key=lambda: "one", source="here")
    def slow() -> str:
        def second() -> None:
            seen.append(slow())
            connection.close()

        thread = Thread(target=second)
        thread.start()
        thread.join()
        return "done"

    assert slow() == "done"
    assert seen == [None]


def test_r40_a_refusal_inside_a_task_is_its_own_error() -> None:
    take(fingerprint=b"one")

    @idempotent_task(key=lambda: "one", source="here")
    def reads() -> None:
        raise MessageRefused("inner", code="in-progress")

    with pytest.raises(MessageRefused, match="inner"):
        reads()
    assert Key.objects.filter(scope="here").count() == 0


@shared_task(name="tests.pay_in")
@idempotent_task()
def pay_in(order: int) -> None:
    Group.objects.create(name=f"order {order}")


@shared_task(name="tests.pay_all_in")
def pay_all_in() -> None:
    for order in (1, 2):
        pay_in(order)


def test_r40_a_redelivered_message_is_worked_on_once() -> None:
    for order in (1, 1, 2):
        pay_in.apply(args=(order,), task_id=f"message {order}", throw=True)
    assert (Group.objects.count(), Key.objects.count()) == (2, 2)


def test_r40_a_task_that_another_calls_as_a_function_does_not_pass_for_its_message() -> None:
    """The second order would be taken for a repeat of the first, and dropped."""
    with pytest.raises(Misuse, match="key"):
        pay_all_in.apply(throw=True)


def test_r40_without_a_key_the_message_id_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    @idempotent_task()
    def task() -> str:
        return "ran"

    with pytest.raises(Misuse, match="key"):
        task()
    monkeypatch.setattr(wake, "current_message_id", lambda: "m-1")
    assert [task(), task()] == ["ran", None]
