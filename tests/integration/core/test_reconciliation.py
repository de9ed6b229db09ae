"""Nobody knows yet: what a look-up proves, and what it does not (R11, R36–R39; A1, E11, I2–I5)."""

import subprocess
import sys
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.db.models import F

from idempotency import reconciliation, telemetry
from idempotency.conf import conf
from idempotency.exceptions import CallFailed
from idempotency.ledger.process import current_process
from idempotency.ledger.purge import purge_batch
from idempotency.models import Event, Key, Sender, Step
from idempotency.operations import heard_of, late_news
from idempotency.testing import pass_time, together
from idempotency.types import Absent, Applied, News, OutsideResult, Pending, Rejected
from tests.integration.core.conftest import Caller
from tests.support.host import ChargeResolver, other_side

pytestmark = pytest.mark.django_db(transaction=True)

SETTLING = 20
LEASE = 45
KEY_TTL = 2_592_000


def dead_process() -> dict[str, Any]:
    """Return the identity of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    here = current_process()
    return {
        "boot_id": here.boot_id,
        "pid_namespace": here.pid_namespace,
        "pid": process.pid,
        "process_started": "1",
    }


def orphan(caller: Caller, key: str, path: str = "/charge/", does: str = "apply") -> None:
    """Leave the key as kill -9 during the call leaves it: journal committed, no ending, lease running."""
    other_side.script.append(does)
    caller.post(path, {"name": "a"}, key=key)
    Group.objects.filter(name="a-done").delete()
    Sender.objects.update(ending=None, ended_at=None, evidence={})
    Step.objects.update(applied_at=None, result=None, reference="")
    Key.objects.update(
        state="in_progress",
        lease_until=F("claimed_at") + timedelta(seconds=LEASE),
        settled_at=None,
        settled_by="",
        status=None,
        body=None,
        content_type=None,
        unknown_since=None,
        unfinished=False,
        next_lookup_at=None,
        watched=False,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET lease_until = claimed_at + %s * interval '1 second'",
            [LEASE],
        )


def reconciles(key_id: uuid.UUID) -> Callable[[int], reconciliation.Report]:
    """Return what each of several reconcilers does."""
    return lambda _: reconciliation.reconcile(key_id=key_id)


def run() -> list[str]:
    return [report.decision for report in reconciliation.run()]


def test_r36_lost_answer_is_found_and_finished_with_the_views_own_bytes(
    caller: Caller, key: str
) -> None:
    other_side.script.append("apply-and-lose")
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 504
    pass_time(5)
    assert run() == ["applied"]

    again = caller.post("/charge/", {"name": "a"}, key=key)
    row = Key.objects.get()
    assert (row.state, row.settled_by) == ("completed", "reconciler")
    assert row.evidence["decision"] == "applied"
    assert (again.status_code, again["Idempotent-Replayed"]) == (201, "true")
    assert Group.objects.filter(name="a-done").count() == 1
    assert (len(other_side.requests), len(other_side.effects)) == (1, 1)

    direct = caller.post("/charge/", {"name": "b"}, key=key + "2")
    reference = direct.json()["reference"]
    expected = direct.content.replace(b'"b"', b'"a"')
    expected = expected.replace(reference.encode(), again.json()["reference"].encode())
    assert again.content == expected
    assert again["Content-Type"] == direct["Content-Type"]


def test_r11_a_lapsed_lease_becomes_unknown_and_is_never_simply_run_again(
    caller: Caller, key: str
) -> None:
    """A1: in the lease 409; after it unknown, settled from the other side; one effect."""
    orphan(caller, key)
    assert caller.post("/charge/", {"name": "a"}, key=key).json()["code"] == "in-progress"
    assert run() == []
    pass_time(LEASE + 1)
    assert caller.post("/charge/", {"name": "a"}, key=key).json()["code"] == "outcome-unknown"
    assert len(other_side.requests) == 1
    assert run() == ["applied"]
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert len(other_side.effects) == 1


def test_r36_not_found_counts_only_after_the_settling_time(caller: Caller, key: str) -> None:
    other_side.script.append("lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(5)
    assert run() == ["not-yet"]
    assert Key.objects.get().state == "unknown"
    pass_time(SETTLING)
    assert run() == ["not-applied"]
    assert Key.objects.get().state == "released"
    assert ChargeResolver.told[-1][1] == "released"
    answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert answer.status_code == 201
    first, second = other_side.requests
    assert first == second, "absence never rotates the downstream key (R23)"
    assert len(other_side.effects) == 1


def test_r36_an_open_send_on_a_keyed_side_is_released_and_watched(caller: Caller, key: str) -> None:
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    assert run() == ["not-applied"]
    row = Key.objects.get()
    assert (row.state, row.watched) == ("released", True)
    assert row.next_lookup_at is not None


def test_r39_late_news_about_a_released_key_calls_a_person(caller: Caller, key: str) -> None:
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    run()
    other_side.effects.append(Step.objects.get().downstream_key)
    pass_time(60)
    assert run() == ["applied"]
    news = Event.objects.get(kind="late-news")
    assert news.alarming
    row = Key.objects.get()
    assert (row.state, row.needs_person_since is not None) == ("released", True)


def test_r39_a_second_time_is_raised_once_however_long_it_is_watched(
    caller: Caller, key: str
) -> None:
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    assert run() == ["not-applied"]
    for again, raised in ((("ch_2",), 2), (("ch_2",), 2), (("ch_2", "ch_3"), 3)):
        other_side.lookup = Applied(OutsideResult("ch_1", {}), again=again)
        pass_time(1_000)
        run()
        assert Event.objects.filter(kind="late-news").count() == raised


def test_r39_what_was_raised_is_not_forgotten_when_the_key_goes_on(
    caller: Caller, key: str
) -> None:
    """The caller's repeat completes it; until a person has seen to the alarm, its page says so."""
    other_side.script.append("lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(SETTLING + 5)
    assert run() == ["not-applied"]
    late_news(key_id=Key.objects.get().id, actor="event", detail={}, news=News.TWICE)
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    row = Key.objects.get()
    assert (row.state, row.needs_person_reason) == ("completed", News.TWICE.sentence)


def test_r36_a_watch_ends_when_the_sender_is_proven_dead(caller: Caller, key: str) -> None:
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    run()
    Sender.objects.update(**dead_process())
    pass_time(60)
    assert run() == ["not-yet"]
    assert Sender.objects.get().dead_at is not None
    pass_time(400)
    run()
    row = Key.objects.get()
    assert (row.watched, row.next_lookup_at) == (False, None)
    assert Sender.objects.get().ending == "absent"


def test_r36_unkeyed_with_a_sender_not_proven_dead_needs_a_person(caller: Caller, key: str) -> None:
    other_side.keyed = False
    orphan(caller, key, path="/charge-unkeyed/", does="lose")
    pass_time(LEASE + 1)
    assert run() == ["needs-person"]
    row = Key.objects.get()
    assert (row.state, row.needs_person_since is not None) == ("unknown", True)
    pass_time(100_000)
    assert run() == ["needs-person"]
    assert Key.objects.get().state == "unknown", "age never settles"


def test_r36_unkeyed_is_released_once_death_is_proven_and_settled(caller: Caller, key: str) -> None:
    other_side.keyed = False
    orphan(caller, key, path="/charge-unkeyed/", does="lose")
    Sender.objects.update(**dead_process())
    pass_time(LEASE + 1)
    assert run() == ["not-yet"], "death was proven only now: the settling time begins"
    pass_time(SETTLING + 1)
    assert run() == ["not-applied"]
    assert Key.objects.get().state == "released"


def test_r36_what_the_other_side_refused_is_completed_with_the_verdict(
    caller: Caller, key: str
) -> None:
    other_side.script.append("lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    other_side.lookup = Rejected(
        "no money", "card_declined", OutsideResult("r", {"status": "failed"})
    )
    pass_time(5 + SETTLING)
    assert run() == ["rejected"]
    answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert (answer.status_code, answer["Idempotent-Replayed"]) == (409, "true")
    assert Key.objects.get().state == "completed"


def test_i2_an_outage_is_no_verdict_and_ages_nothing(caller: Caller, key: str) -> None:
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    other_side.lookup = CallFailed("unreachable", sent=False)
    for _ in range(30):
        pass_time(600)
        assert run() == ["unreachable"]
    row = Key.objects.get()
    assert (row.state, row.lookups, row.needs_person_since) == ("unknown", 0, None)
    other_side.lookup = None
    pass_time(600)
    assert run() == ["applied"]


def test_r38_unknown_for_too_long_needs_a_person_and_still_never_expires(
    caller: Caller, key: str
) -> None:
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    other_side.lookup = Pending()
    pass_time(4_000)
    assert run() == ["pending"]
    assert Key.objects.get().needs_person_since is not None
    other_side.lookup = None
    pass_time(4_000)
    assert run() == ["applied"]
    assert Key.objects.get().needs_person_since is None


def test_r36_a_look_up_of_a_journal_that_moved_settles_nothing(caller: Caller, key: str) -> None:
    """A stale look-up can never decide "no"."""
    other_side.script.append("lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(SETTLING + 5)

    class Racing:
        def __call__(self, step: object) -> Absent:
            Key.objects.update(journal_version=99)
            return Absent()

    other_side.look_up, original = Racing(), other_side.look_up  # type: ignore[method-assign]
    try:
        assert run() == ["moved"]
    finally:
        other_side.look_up = original  # type: ignore[method-assign]
    assert Key.objects.get().state == "unknown"


def test_r36_an_unfinished_key_is_finished_without_asking(caller: Caller, key: str) -> None:
    answer = caller.post("/charge/", {"name": "a", "kind": "raise-after"}, key=key)
    assert answer.status_code == 504
    pass_time(6)
    assert run() == ["applied"]
    assert other_side.looked_up == 0
    assert caller.post("/charge/", {"name": "a", "kind": "raise-after"}, key=key).status_code == 201


def test_r23_past_the_key_memory_nothing_is_sent_under_the_old_key(
    caller: Caller, key: str
) -> None:
    """E7: on a released key, the next try goes under a new downstream key only if nothing of the old is left."""
    other_side.script.append("lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(SETTLING + 5)
    assert run() == ["not-applied"]
    pass_time(90_000)
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    first, second = (downstream for downstream, _ in other_side.requests)
    assert first != second


@pytest.mark.parametrize("left", [-3600, 5, 600])
def test_r23_past_the_key_memory_with_a_sender_open_a_person_decides(
    caller: Caller, key: str, left: float
) -> None:
    """Nor just before it: the last send of this try, or the other side's clock, may be past it."""
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    assert run() == ["not-applied"]
    pass_time(86_400 - LEASE - 1 - left)
    answer = caller.post("/charge/", {"name": "a"}, key=key)
    assert answer.status_code == 504
    row = Key.objects.get()
    assert (row.state, row.needs_person_since is not None) == ("unknown", True)
    assert len(other_side.requests) == 1


def test_r37_a_person_settles_with_evidence_and_only_after_a_look_up(
    caller: Caller, key: str
) -> None:
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    row = Key.objects.get()

    def settle(happened: bool, **evidence: object) -> reconciliation.Report:
        return reconciliation.settle_by_hand(
            key_id=row.id, happened=happened, actor="ops", reason="seen there", evidence=evidence
        )

    with pytest.raises(reconciliation.Refused, match="look-up"):
        settle(True, reference="ch_1")
    other_side.lookup = Pending()
    pass_time(5)
    run()
    with pytest.raises(reconciliation.Refused, match="id"):
        settle(True)
    assert settle(True, reference="ch_1").decision == "applied"
    row.refresh_from_db()
    assert (row.state, row.settled_by) == ("completed", "ops")
    assert Step.objects.get().reference == "ch_1"
    event = Event.objects.get(kind="settled-by-hand")
    assert (event.actor, event.reason) == ("ops", "seen there")
    with pytest.raises(reconciliation.Refused, match="only an unknown one"):
        settle(False)


def test_r37_unkeyed_and_still_able_to_act_is_closed_not_released(caller: Caller, key: str) -> None:
    other_side.keyed = False
    orphan(caller, key, path="/charge-unkeyed/", does="lose")
    pass_time(LEASE + 1)
    run()
    report = reconciliation.settle_by_hand(
        key_id=Key.objects.get().id, happened=False, actor="ops", reason="not there", evidence={}
    )
    assert report.decision == "not-done"
    row = Key.objects.get()
    assert (row.state, row.watched) == ("completed", True)
    answer = caller.post("/charge-unkeyed/", {"name": "a"}, key=key)
    assert (answer.status_code, answer.json()["code"]) == (409, "not-done")
    assert len(other_side.requests) == 1


def test_the_command_says_what_it_did(caller: Caller, key: str, capsys: Any) -> None:
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(6)
    call_command("idempotency_reconcile", "--dry-run")
    assert "would-ask" in capsys.readouterr().out
    assert Key.objects.get().state == "unknown"
    call_command("idempotency_reconcile", "--all")
    assert "applied" in capsys.readouterr().out
    assert Key.objects.get().state == "completed"


def test_the_command_fails_for_a_key_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="No key"):
        call_command("idempotency_reconcile", "--key", str(uuid.uuid4()))


def test_r37_two_reconcilers_settle_once(caller: Caller) -> None:
    for number in range(10):
        other_side.script.append("apply-and-lose")
        caller.post("/charge/", {"name": f"r{number}"}, key=f"key-{number}")
        row = Key.objects.get(key=f"key-{number}")
        reports = together(4, reconciles(row.id))
        decisions = sorted(report.decision for report in reports)
        assert decisions.count("applied") == 1, decisions
        assert Group.objects.filter(name=f"r{number}-done").count() == 1


def test_r36_unreachable_reads_of_the_error_do_not_stop_the_batch(caller: Caller) -> None:
    for number in range(3):
        other_side.script.append("apply-and-lose")
        caller.post("/charge/", {"name": f"b{number}"}, key=f"key-{number}")
    broken = Step.objects.order_by("id")[0].downstream_key
    original = other_side.look_up

    def look_up(step: Any) -> Any:
        if step.downstream_key == broken:
            raise ValueError("a bug in a resolver")
        return original(step)

    other_side.look_up = look_up  # type: ignore[method-assign]
    try:
        pass_time(6)
        assert sorted(run()) == ["applied", "applied", "unreachable"]
    finally:
        other_side.look_up = original  # type: ignore[method-assign]


def test_r36_a_batch_of_slow_look_ups_ends_in_time_and_the_next_one_goes_on(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A task that is killed at its hard limit, again and again, never shows that it is alive."""
    for number in range(4):
        other_side.script.append("apply-and-lose")
        caller.post("/charge/", {"name": f"s{number}"}, key=f"key-{number}")
    monkeypatch.setattr("idempotency.reconciliation.batch.SECONDS", 0)
    pass_time(6)
    assert run() == ["applied"]
    call_command("idempotency_reconcile", "--all")
    assert "3 key(s)" in capsys.readouterr().out


def test_r38_an_error_that_nobody_had_foreseen_calls_a_person_and_an_outage_does_not(
    caller: Caller, key: str
) -> None:
    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    for error, reason in ((OperationalError("gone"), ""), (ValueError("a bug"), TOO_LONG)):
        other_side.lookup = error
        pass_time(2 * conf.NEEDS_PERSON_AFTER)
        assert run() == ["unreachable"]
        row = Key.objects.get()
        assert (row.state, row.needs_person_reason) == ("unknown", reason)
    other_side.lookup = None
    pass_time(600)
    assert run() == ["applied"]
    assert Key.objects.get().needs_person_since is None


def test_r36_a_host_without_time_zones_is_reconciled_too(
    caller: Caller, key: str, settings: Any
) -> None:
    settings.USE_TZ = False
    # The connection was opened with them.
    connection.close()
    try:
        other_side.script.append("lose")
        caller.post("/charge/", {"name": "a"}, key=key)
        pass_time(6)
        assert run() == ["not-yet"]
        pass_time(600)
        assert run() == ["not-applied"]
    finally:
        connection.close()


TOO_LONG = "It is unknown for too long."


def test_r36_a_reconciler_that_dies_keeps_the_others_from_one_key_for_one_look_up(
    caller: Caller,
) -> None:
    for number in range(3):
        other_side.script.append("apply-and-lose")
        caller.post("/charge/", {"name": f"d{number}"}, key=f"key-{number}")
    pass_time(6)
    other_side.lookup = SystemExit()
    with pytest.raises(SystemExit):
        run()
    other_side.lookup = None
    assert run() == ["applied", "applied"]
    assert run() == []
    pass_time(conf.REQUEST_BUDGET)
    assert run() == ["applied"]


def test_r36_what_is_watched_begins_no_new_life(caller: Caller, key: str) -> None:
    """A sender of the old life may still act: a new one, under a new downstream key, would not be told."""
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    assert run() == ["not-applied"]
    pass_time(KEY_TTL + 1)
    assert purge_batch(limit=10).keys == 0
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 504
    row = Key.objects.get()
    assert (row.generation, row.watched, len(other_side.requests)) == (1, True, 1)


def test_r36_a_watch_over_a_vanished_host_ends_with_the_keys_time(caller: Caller, key: str) -> None:
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    assert run() == ["not-applied"]
    Sender.objects.update(boot_id="of a machine that is gone")
    pass_time(KEY_TTL / 2)
    assert run() == ["not-yet"]
    assert Key.objects.get().watched
    pass_time(KEY_TTL)
    other_side.lookup = Pending()
    assert run() == ["not-yet"]
    assert Key.objects.get().watched, "what is pending may still come true"
    other_side.lookup = None
    pass_time(400)
    assert run() == ["not-yet"]
    row = Key.objects.get()
    assert (row.watched, row.next_lookup_at) == (False, None)
    assert purge_batch(limit=10).keys == 1


def test_r36_refused_with_a_sender_that_may_still_act_says_so(caller: Caller, key: str) -> None:
    orphan(caller, key, does="lose")
    pass_time(LEASE + 1)
    other_side.lookup = Rejected("no", "card_declined", OutsideResult("r", {"status": "failed"}))
    assert run() == ["needs-person"]
    row = Key.objects.get()
    assert (row.state, row.needs_person_reason) == (
        "unknown",
        "The other side refused it, but a sender that is not proven dead may still act.",
    )
    Sender.objects.update(**dead_process())
    pass_time(60)
    run()
    pass_time(400)
    run()
    row.refresh_from_db()
    assert (row.state, row.needs_person_since) == ("completed", None)


def test_r14_what_a_look_up_has_proven_a_callers_repeat_goes_on_with(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finishing failed for good; the next identical request runs over the record, and asks nobody."""

    def bug(*_: Any, **__: Any) -> Any:
        raise ValueError("a bug in finish")

    monkeypatch.setattr(ChargeResolver, "finish", bug)
    other_side.script.append("apply-and-lose")
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 504
    assert not Key.objects.get().unfinished
    pass_time(SETTLING + 5)
    assert run() == ["needs-person"]
    row = Key.objects.get()
    assert (row.state, row.unfinished) == ("unknown", True)

    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert (len(other_side.requests), len(other_side.effects)) == (1, 1)
    assert Key.objects.get().needs_person_since is None


def test_r14_what_an_event_has_proven_a_callers_repeat_goes_on_with(
    caller: Caller, key: str
) -> None:
    other_side.script.append("apply-and-lose")
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 504
    row = Key.objects.get()
    with transaction.atomic():
        heard_of(key_id=row.pk, step="charge", reference="ref-1")
    assert not Key.objects.get().unfinished
    with transaction.atomic():
        result = OutsideResult("ref-1", {"status": "succeeded"})
        heard_of(key_id=row.pk, step="charge", reference="ref-1", result=result)
    assert Key.objects.get().unfinished

    again = caller.post("/charge/", {"name": "a"}, key=key)
    assert (again.status_code, again.json()["reference"]) == (201, "ref-1")
    assert (len(other_side.requests), other_side.looked_up) == (1, 0)


def test_r39_the_same_news_that_four_hear_at_once_is_raised_once(caller: Caller, key: str) -> None:
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    row = Key.objects.get()
    for number in range(20):

        def hear(_: int, reference: str = f"again-{number}") -> None:
            with transaction.atomic():
                detail = {"gateway_reference": reference}
                late_news(key_id=row.pk, actor="event", detail=detail, news=News.TWICE)

        together(4, hear)
        assert Event.objects.filter(kind="late-news").count() == number + 1


def test_r14_proof_of_one_step_is_not_enough_while_another_is_open(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_side.script[:] = ["apply", "apply-and-lose"]
    body = {"name": "a", "kind": "second-call"}
    assert caller.post("/charge/", body, key=key).status_code == 504
    other_side.lookup = Pending()
    pass_time(SETTLING + 5)
    assert run() == ["pending"]
    assert not Key.objects.get().unfinished
    assert caller.post("/charge/", body, key=key).status_code == 409


def test_r38_a_callers_repeat_does_not_take_a_key_from_the_person_it_needs(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: Any, **__: Any) -> Any:
        raise ValueError("a bug in finish")

    needed: list[telemetry.Event] = []
    monkeypatch.setattr(telemetry, "emit", needed.append)
    monkeypatch.setattr(ChargeResolver, "finish", bug)
    body = {"name": "a", "kind": "second-call"}
    refused = CallFailed("could not connect", sent=False)
    other_side.script[:] = ["apply", refused, refused, "apply"]
    assert caller.post("/charge/", body, key=key).status_code == 504
    pass_time(6)
    assert run() == ["needs-person"]
    before = Key.objects.get()
    assert before.needs_person_since is not None

    assert caller.post("/charge/", body, key=key).status_code == 504
    after = Key.objects.get()
    assert after.token > before.token
    assert (after.needs_person_since, after.needs_person_reason) == (
        before.needs_person_since,
        before.needs_person_reason,
    )
    assert len([event for event in needed if isinstance(event, telemetry.PersonNeeded)]) == 1

    assert caller.post("/charge/", body, key=key).status_code == 201
    assert Key.objects.get().needs_person_since is None
