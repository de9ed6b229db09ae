"""A handler with an outside call: journal first, then the call, then one settlement (R11–R15, R22, R23)."""

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from idempotency.exceptions import CallFailed, CallRejected, CallUnknown
from idempotency.models import Event, Key, Sender, Step
from tests.integration.core.conftest import Caller
from tests.support.host import ChargeResolver, other_side

pytestmark = pytest.mark.django_db(transaction=True)


def groups() -> set[str]:
    return set(Group.objects.values_list("name", flat=True))


def test_r13_intent_is_committed_before_the_call_and_no_transaction_is_open(
    caller: Caller, key: str
) -> None:
    seen: dict[str, object] = {}

    def while_calling() -> None:
        seen["in transaction"] = connection.in_atomic_block
        row = Key.objects.get()
        seen["row"] = (row.state, row.call_begun, row.lease_until is not None)
        seen["pending"] = groups()
        seen["sender"] = list(Sender.objects.values_list("ending", flat=True))

    other_side.script.append(while_calling)
    first = caller.post("/charge/", {"name": "a"}, key=key)

    assert seen == {
        "in transaction": False,
        "row": ("in_progress", True, True),
        "pending": {"a-pending"},
        "sender": [None],
    }
    assert first.status_code == 201
    assert groups() == {"a-pending", "a-done"}
    row = Key.objects.get()
    assert (row.state, row.reference, row.summary) == ("completed", "a", "Charge a")
    assert Step.objects.get().result == {"status": "succeeded"}
    assert Sender.objects.get().ending == "applied"
    again = caller.post("/charge/", {"name": "a"}, key=key)
    assert (again.content, len(other_side.requests)) == (first.content, 1)


@pytest.mark.parametrize(
    ("error", "kind", "status", "state", "ending"),
    [
        (CallRejected("no", code="card_declined"), None, 402, "completed", "rejected"),
        (CallFailed("not now", sent=True), None, 503, "released", "not_applied"),
        (CallFailed("refused", sent=False), None, 503, "released", "not_sent"),
        (CallUnknown("lost"), None, 504, "unknown", "ambiguous"),
        (RuntimeError("nobody had foreseen it"), None, 504, "unknown", "ambiguous"),
        (CallUnknown("lost"), "swallow", 504, "unknown", "ambiguous"),
        (CallFailed("refused", sent=False), "swallow", 201, "completed", "not_sent"),
    ],
)
def test_r14_how_a_call_ended_decides(
    caller: Caller,
    key: str,
    error: Exception,
    kind: str | None,
    status: int,
    state: str,
    ending: str,
) -> None:
    other_side.script.append(error)
    answer = caller.post("/charge/", {"name": "a", "kind": kind}, key=key)

    assert answer.status_code == status, answer.content
    assert Key.objects.get().state == state
    assert Sender.objects.get().ending == ending
    assert "a-done" not in groups()
    # What the handler did after an error it swallowed stands only with an answer that stands.
    assert ("a-swallowed" in groups()) is (status == 201)
    if status >= 500:
        assert int(answer["Retry-After"]) >= 1
    if state == "unknown":
        body = answer.json()
        assert (body["code"], body["safe_new_key"]) == ("outcome-unknown", False)
        assert body["operation_ref"] == str(Key.objects.get().id)
        assert body["resource"] == "/groups/a/"
        again = caller.post("/charge/", {"name": "a", "kind": kind}, key=key)
        assert (again.status_code, again.json()["code"]) == (409, "outcome-unknown")
        assert len(other_side.requests) == 1


@pytest.mark.parametrize(
    ("kind", "needs_person"),
    [("raise-after", False), ("verdict-after", True), ("constraint-after", True)],
)
def test_r14_what_goes_wrong_after_an_applied_step_is_unfinished(
    caller: Caller, key: str, kind: str, needs_person: bool
) -> None:
    answer = caller.post("/charge/", {"name": "a", "kind": kind}, key=key)

    assert (answer.status_code, answer.json()["code"]) == (504, "outcome-unknown")
    row = Key.objects.get()
    assert (row.state, row.unfinished) == ("unknown", True)
    assert (row.needs_person_since is not None) is needs_person
    assert Sender.objects.get().ending == "applied"
    assert groups() == {"a-pending"}


def test_r14_the_next_identical_request_resumes_without_calling_again(
    caller: Caller, key: str
) -> None:
    body = {"name": "a", "kind": "second-call"}
    other_side.script[:] = ["apply", CallFailed("not sent")]
    assert caller.post("/charge/", body, key=key).status_code == 504
    assert Key.objects.get().unfinished

    answer = caller.post("/charge/", body, key=key)

    assert answer.status_code == 201
    assert [step.name for step in Step.objects.order_by("id")] == ["charge", "second"]
    assert len(other_side.requests) == 3
    assert len(other_side.effects) == len(set(other_side.effects)) == 2
    assert groups() == {"a-pending", "a-done"}


def test_r14_released_keys_may_be_tried_again_with_the_same_bytes(caller: Caller, key: str) -> None:
    other_side.script[:] = [CallFailed("refused", sent=False), "apply"]
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 503
    assert caller.post("/charge/", {"name": "b"}, key=key).status_code == 422
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    (first_key, first_bytes), (second_key, second_bytes) = other_side.requests
    assert (first_key, first_bytes) == (second_key, second_bytes)
    assert len(other_side.effects) == 1


def test_r23_only_the_other_sides_own_no_rotates_the_downstream_key(
    caller: Caller, key: str
) -> None:
    other_side.script[:] = [
        CallFailed("unreachable", sent=False),
        CallFailed("stated: not executed", sent=True),
        "apply",
    ]
    for status in (503, 503, 201):
        assert caller.post("/charge/", {"name": "a"}, key=key).status_code == status
    keys = [downstream for downstream, _ in other_side.requests]
    assert keys[0] == keys[1] != keys[2]
    assert list(Step.objects.order_by("id").values_list("rotation", flat=True)) == [0, 1]


def test_r13_a_call_inside_the_handlers_own_atomic_is_refused(caller: Caller, key: str) -> None:
    assert caller.post("/nested/", key=key).status_code == 500
    assert not other_side.requests
    assert not Key.objects.exists()


def test_r14_a_refusal_before_the_call_leaves_nothing(caller: Caller, key: str) -> None:
    body = {"name": "a", "kind": "invalid-before"}
    assert caller.post("/charge/", body, key=key).status_code == 400
    assert not Key.objects.exists()
    assert not groups()


def test_r12_a_claim_whose_time_is_over_sends_nothing(
    caller: Caller, key: str, settings: object
) -> None:
    from idempotency.ledger import claim as claims
    from idempotency.resilience import Deadline

    original = claims.Claim._before_send

    def late(self: claims.Claim) -> None:
        self.deadline = Deadline.after(-1)
        original(self)

    sent = []

    def send() -> None:
        from idempotency.resilience import current_journal

        journal = current_journal()
        assert journal is not None
        journal.before_send()
        sent.append(1)

    other_side.script.append(send)
    claims.Claim._before_send = late  # type: ignore[method-assign]
    try:
        answer = caller.post("/charge/", {"name": "a"}, key=key)
    finally:
        claims.Claim._before_send = original  # type: ignore[method-assign]
    assert answer.status_code in (409, 503, 504)
    assert not sent
    assert not other_side.effects


def test_r13_business_rows_end_with_their_key(caller: Caller, key: str) -> None:
    other_side.script.append(CallFailed("refused", sent=False))
    caller.post("/charge/", {"name": "a"}, key=key)
    row = Key.objects.get()
    assert ChargeResolver.told == [(row.id, "released")]


def test_r12_a_superseded_owner_writes_only_its_ending_and_late_news(
    caller: Caller, key: str
) -> None:
    """A4: the replaced owner comes back and settles nothing."""

    def replaced() -> None:
        Key.objects.update(
            token=99, state="released", lease_until=None, settled_at="2020-01-01T00:00:00Z"
        )

    other_side.script.append(replaced)
    answer = caller.post("/charge/", {"name": "a"}, key=key)

    assert answer.status_code != 201
    row = Key.objects.get()
    assert (row.state, row.token) == ("released", 99)
    assert Sender.objects.get().ending == "applied"
    news = Event.objects.get()
    assert (news.kind, news.alarming) == ("late-news", True)
    assert "a-done" not in groups()
