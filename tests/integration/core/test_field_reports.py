"""What goes wrong for people in real life, tried on the spine: each test names the report that it answers."""

import threading
import time
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, connection, transaction
from django.test import Client
from rest_framework.authtoken.models import Token

from idempotency import reconciliation
from idempotency.exceptions import CallFailed, CallRejected, CallUnknown
from idempotency.models import Event, Key
from idempotency.testing import pass_time, together
from tests.integration.core.conftest import Caller
from tests.integration.core.test_races import sends
from tests.support.host import other_side

pytestmark = pytest.mark.django_db(transaction=True)


def test_a2_an_immortal_lock_cannot_even_be_written(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    for lease, due in (("NULL", "NULL"), ("now()", "now()")):
        with (
            pytest.raises(IntegrityError, match="in_progress_is_leased_or_due"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(
                "UPDATE idempotency_key SET state = 'in_progress', settled_at = NULL, "
                f"lease_until = {lease}, due_at = {due}"
            )


def test_a6_a_failure_outside_the_handler_leaves_the_answer_settled(
    caller: Caller, key: str, settings: Any
) -> None:
    """An error in a middleware around us comes after the settlement: the retry is a replay."""
    settings.MIDDLEWARE = [
        "tests.integration.core.test_field_reports.fails_once",
        *settings.MIDDLEWARE,
    ]
    failing.set()
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 500
    again = caller.post("/local/", {"name": "a"}, key=key)
    assert (again.status_code, again["Idempotent-Replayed"]) == (201, "true")
    assert Group.objects.count() == 1


failing = threading.Event()


def fails_once(get_response: Any) -> Any:
    """Be a middleware that fails after the view, once."""

    def middleware(request: Any) -> Any:
        response = get_response(request)
        if failing.is_set():
            failing.clear()
            raise RuntimeError("a middleware outside")
        return response

    return middleware


def test_r18_a7_who_hangs_up_cancels_neither_the_work_nor_its_record(
    caller: Caller, key: str
) -> None:
    """A cancellation that reaches the handler after the effect: the key is not lost, and nothing runs twice."""
    other_side.script.append(_applied_then(GeneratorExit()))
    with pytest.raises(GeneratorExit):
        caller.post("/charge/", {"name": "a"}, key=key)
    assert Key.objects.get().state == "unknown"
    pass_time(6)
    assert [report.decision for report in reconciliation.run()] == ["applied"]
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert len(other_side.effects) == 1


def _applied_then(error: BaseException) -> Any:
    def does() -> None:
        downstream, _ = other_side.requests[-1]
        other_side.effects.append(downstream)
        raise error

    return does


def test_a8_the_answer_is_stored_before_anybody_can_have_read_it(caller: Caller) -> None:
    for number in range(50):
        key = uuid.uuid4().hex
        first = caller.post("/local/", {"name": f"n{number}"}, key=key)
        again = caller.post("/local/", {"name": f"n{number}"}, key=key)
        assert again["Idempotent-Replayed"] == "true"
        assert again.content == first.content


def test_a9_the_loser_of_the_insert_race_never_gets_a_5xx(caller: Caller, key: str) -> None:
    answers = together(50, sends(caller, "/charge/", {"name": "a"}, key))
    assert sorted({answer.status_code for answer in answers}) in ([201], [201, 409])
    assert len(other_side.effects) == 1


def test_a14_different_keys_of_one_caller_wait_for_nothing_in_common(caller: Caller) -> None:
    """Thirty slow calls at once: at one moment all thirty are outside, so no lock of ours spans the call."""
    outside = threading.Barrier(30)
    other_side.script[:] = [_waits(outside)] * 30
    answers = together(
        30, lambda number: caller.post("/charge/", {"name": f"n{number}"}, key=f"key-{number}")
    )
    assert {answer.status_code for answer in answers} == {201}


def _waits(barrier: threading.Barrier) -> Any:
    def does() -> None:
        barrier.wait(60)

    return does


def test_b3_a_replay_does_not_outlive_the_right_to_it(key: str) -> None:
    user = User.objects.create_user("carol")
    token = Token.objects.create(user=user)

    def post() -> Any:
        return Client().post(
            "/local/",
            {"name": "a"},
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Token {token.key}",
            HTTP_IDEMPOTENCY_KEY=key,
        )

    first = post()
    assert first.status_code == 201
    User.objects.update(is_active=False)
    refused = post()
    assert refused.status_code == 401
    assert b"nonce" not in refused.content


def test_b4_a_new_token_is_the_same_caller(key: str) -> None:
    user = User.objects.create_user("carol")

    def post() -> Any:
        Token.objects.filter(user=user).delete()
        token = Token.objects.create(user=user)
        return Client().post(
            "/local/",
            {"name": "a"},
            content_type="application/json",
            HTTP_AUTHORIZATION=f"Token {token.key}",
            HTTP_IDEMPOTENCY_KEY=key,
        )

    assert post().content == post().content
    assert Group.objects.count() == 1


def test_b9_a_key_on_an_endpoint_that_did_not_ask_for_it_is_ignored(
    caller: Caller, key: str
) -> None:
    assert caller.post("/local/", key=key, method="get", body="").json() == {"safe": True}
    assert not Key.objects.exists()


def test_c13_after_a_decline_another_card_needs_another_key_and_is_told_so(
    caller: Caller, key: str
) -> None:
    other_side.script.append(CallRejected("no", code="card_declined"))
    declined = caller.post("/charge/", {"name": "a"}, key=key)
    assert declined.status_code == 402
    assert declined.json()["safe_new_key"] is True
    other = caller.post("/charge/", {"name": "a", "card": 2}, key=key)
    assert (other.status_code, other.json()["safe_new_key"]) == (422, True)
    assert caller.post("/charge/", {"name": "a", "card": 2}, key=key + "2").status_code == 201


def test_c13_while_the_outcome_is_open_a_new_key_is_not_safe(caller: Caller, key: str) -> None:
    other_side.script.append(CallUnknown("lost"))
    caller.post("/charge/", {"name": "a"}, key=key)
    other = caller.post("/charge/", {"name": "a", "card": 2}, key=key)
    assert (other.status_code, other.json()["safe_new_key"]) == (422, False)
    assert "unknown" in other.json()["detail"]


def test_d1_a_5xx_before_the_call_leaves_the_key_free_and_after_it_unknown(
    caller: Caller, key: str
) -> None:
    assert caller.post("/local/", {"name": "a", "kind": "raise"}, key=key).status_code == 500
    assert not Key.objects.exists()
    assert caller.post("/charge/", {"name": "a", "kind": "raise-after"}, key=key).status_code == 504
    assert Key.objects.get().state == "unknown"


def test_d6_k5_our_conflict_and_the_handlers_own_cannot_be_confused(
    caller: Caller, key: str
) -> None:
    own = caller.post("/local/", {"name": "a", "kind": "conflict"}, key=key)
    again = caller.post("/local/", {"name": "a", "kind": "conflict"}, key=key)
    assert (own.status_code, again.status_code) == (409, 409)
    assert own.json()["code"] == again.json()["code"] == "no-stock"
    assert "Retry-After" not in again


def test_e1_e2_one_downstream_key_over_all_tries_until_a_definite_no(
    caller: Caller, key: str
) -> None:
    refused = CallFailed("could not connect", sent=False)
    other_side.script[:] = [refused, refused, refused, "apply"]
    statuses = [caller.post("/charge/", {"name": "a"}, key=key).status_code for _ in range(4)]
    assert statuses == [503, 503, 503, 201]
    assert len({downstream for downstream, _ in other_side.requests}) == 1
    assert len({payload for _, payload in other_side.requests}) == 1


def test_i5_nothing_depends_on_a_minimum_age(caller: Caller, key: str) -> None:
    """A look-up while the first request is still calling finds a lease, and leaves."""
    reports: list[Any] = []

    def meanwhile() -> None:
        row = Key.objects.get()
        reports.append(reconciliation.reconcile(key_id=row.id))
        reports.extend(reconciliation.run())

    other_side.script.append(meanwhile)
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert [report.decision for report in reports] == ["under-way"]
    assert other_side.looked_up == 0


def test_k7_one_history_whatever_connection_asks(caller: Caller, key: str) -> None:
    first = caller.post("/local/", {"name": "a"}, key=key)
    for _ in range(10):
        connection.close()
        assert caller.post("/local/", {"name": "a"}, key=key).content == first.content


def test_r10_a_waiting_request_gives_up_after_its_time(
    caller: Caller, key: str, settings: Any
) -> None:
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "WAIT": 0.2}
    told: list[Any] = []

    def meanwhile() -> None:
        began = time.monotonic()
        answer = together(1, sends(caller, "/charge/", {"name": "a"}, key))[0]
        told.append((answer.status_code, time.monotonic() - began >= 0.2))

    other_side.script.append(meanwhile)
    assert caller.post("/charge/", {"name": "a"}, key=key).status_code == 201
    assert told == [(409, True)]


def test_j5_staff_see_refused_repeats_and_in_what_they_differed(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    for _ in range(3):
        caller.post("/local/", {"name": "b"}, key=key)
    caller.post("/local/?x=1", {"name": "a"}, key=key)
    told = [(event.kind, event.detail["differing"]) for event in Event.objects.order_by("id")]
    assert told == [("refused-repeat", ["body"]), ("refused-repeat", ["query"])]


def test_c2_what_differs_is_told_under_the_secret_that_the_key_was_kept_under(
    caller: Caller, key: str, settings: Any
) -> None:
    old, new = {"old": "o" * 32}, {"new": "n" * 32}
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "FINGERPRINT_SECRETS": old}
    caller.post("/local/", {"name": "a"}, key=key)
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "FINGERPRINT_SECRETS": new | old}
    assert caller.post("/local/", {"name": "b"}, key=key).json()["differing"] == ["body"]
