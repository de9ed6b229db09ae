"""Corners of R14, R22 and R36–R38 that the model of one key's life led to."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db.models import F

from idempotency import reconciliation
from idempotency.models import Event, Key, Sender, Step
from idempotency.testing import pass_time
from idempotency.types import Absent, LookUp, OpenStep
from tests.integration.core.conftest import Caller
from tests.integration.core.test_reconciliation import LEASE, SETTLING, run
from tests.support.host import ChargeResolver, other_side

pytestmark = pytest.mark.django_db(transaction=True)


def say_it_did_not_happen() -> reconciliation.Report:
    return reconciliation.settle_by_hand(
        key_id=Key.objects.get().id, happened=False, actor="ops", reason="not there", evidence={}
    )


def late_effect() -> None:
    other_side.effects.append(Step.objects.get().downstream_key)


def test_r22_an_ending_is_kept_where_the_lease_ran_out_before_the_next_step(
    caller: Caller, key: str
) -> None:
    def outlast_the_lease() -> None:
        Key.objects.update(lease_until=F("claimed_at") - timedelta(seconds=LEASE))

    other_side.script.append(outlast_the_lease)
    body = {"name": "a", "kind": "second-call"}
    assert caller.post("/charge/", body, key=key).status_code in (409, 504)

    assert Sender.objects.get().ending == "applied"
    row = Key.objects.get()
    assert (row.state, row.unfinished) == ("unknown", True)
    assert caller.post("/charge/", body, key=key).status_code == 201
    assert len(other_side.effects) == len(set(other_side.effects)) == 2


def test_r37_what_staff_close_over_an_ambiguous_send_is_watched(caller: Caller, key: str) -> None:
    other_side.keyed = False
    other_side.script.append("lose")
    caller.post("/charge-unkeyed/", {"name": "a"}, key=key)
    pass_time(5)
    assert run() == ["not-yet"]
    assert say_it_did_not_happen().decision == "not-done"
    assert Key.objects.get().watched

    late_effect()
    pass_time(60)
    assert run() == ["applied"]
    assert Event.objects.get(kind="late-news").alarming
    pass_time(600)
    run()
    assert not Key.objects.get().watched


@pytest.mark.parametrize("path", ["/charge/"])
def test_r36_staff_too_wait_for_the_settling_time(caller: Caller, key: str, path: str) -> None:
    other_side.script.append("lose")
    caller.post(path, {"name": "a"}, key=key)
    pass_time(5)
    assert run() == ["not-yet"]
    with pytest.raises(reconciliation.Refused, match="settling time"):
        say_it_did_not_happen()
    pass_time(SETTLING)
    assert say_it_did_not_happen().decision == "not-applied"


@pytest.mark.parametrize("path", ["/charge/", "/charge-unkeyed/"])
def test_r36_staff_decide_on_a_look_up_of_the_moment(caller: Caller, key: str, path: str) -> None:
    """What was absent before the settling time was over may be there by now."""
    other_side.keyed = path == "/charge/"
    other_side.script.append("lose")
    caller.post(path, {"name": "a"}, key=key)
    pass_time(5)
    assert run() == ["not-yet"]
    late_effect()
    pass_time(SETTLING)
    with pytest.raises(reconciliation.Refused, match="happened"):
        say_it_did_not_happen()
    assert run() == ["applied"]


def test_r38_what_cannot_be_finished_needs_a_person(
    caller: Caller, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rest_framework.response import Response

    other_side.script.append("apply-and-lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    monkeypatch.setattr(ChargeResolver, "finish", lambda *_, **__: Response(status=503))
    pass_time(5)
    assert run() == ["needs-person"]
    assert Key.objects.get().needs_person_since is not None
    assert not Group.objects.filter(name="a-done").exists()


def test_r36_absence_is_asked_for_the_journal_in_force(caller: Caller, key: str) -> None:
    """A look-up that saw nothing while another sender was at work proves nothing of that one."""
    other_side.script.append("lose")
    caller.post("/charge/", {"name": "a"}, key=key)
    pass_time(SETTLING + 5)
    asked: list[OpenStep] = []

    def look_up(step: OpenStep) -> LookUp:
        asked.append(step)
        Key.objects.update(journal_version=F("journal_version") + 1)
        return Absent()

    other_side.look_up, original = look_up, other_side.look_up  # type: ignore[method-assign]
    try:
        assert say_it_did_not_happen_after_a_look_up() == "moved"
    finally:
        other_side.look_up = original  # type: ignore[method-assign]
    assert Key.objects.get().state == "unknown"


def say_it_did_not_happen_after_a_look_up() -> str:
    Key.objects.update(lookups=1)
    return say_it_did_not_happen().decision
