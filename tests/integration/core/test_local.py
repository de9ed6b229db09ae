"""A handler without an outside call: one commit, or nothing (R8, R13–R17)."""

import pytest
from django.contrib.auth.models import Group, User

from idempotency.models import Key
from tests.integration.core.conftest import Caller

pytestmark = pytest.mark.django_db(transaction=True)


def test_r16_replay_is_the_same_answer_byte_for_byte(caller: Caller, key: str) -> None:
    first = caller.post("/local/", {"name": "a"}, key=key)
    again = caller.post("/local/", {"name": "a"}, key=key)

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert again["Cache-Control"] == "no-store"
    assert "Idempotent-Replayed" not in first
    assert Group.objects.count() == 1
    row = Key.objects.get()
    assert (row.state, row.settled_by, row.call_begun) == ("completed", "request", False)


@pytest.mark.parametrize("kind", ["empty", "binary"])
def test_r16_answers_of_every_kind_are_replayed(caller: Caller, key: str, kind: str) -> None:
    first = caller.post("/local/", {"kind": kind}, key=key)
    again = caller.post("/local/", {"kind": kind}, key=key)

    assert again["Idempotent-Replayed"] == "true"
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert first.get("Content-Type") == again.get("Content-Type")
    assert Group.objects.count() == 1


def test_r15_only_allowed_headers_are_kept(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    again = caller.post("/local/", {"name": "a"}, key=key)

    assert (again["Location"], again["ETag"]) == ("/made/", '"1"')
    assert "Set-Cookie" not in again
    assert "X-Other" not in again


@pytest.mark.parametrize(
    ("kind", "status", "state", "effects"),
    [
        ("raise", 500, None, 0),
        ("invalid", 400, None, 0),
        ("returned-503", 503, None, 0),
        ("deferred-constraint", 500, None, 0),
        ("swallowed-database-error", 500, None, 0),
        ("conflict", 409, "completed", 0),
        ("too-poor", 402, "completed", 0),
        ("returned-402", 402, "completed", 1),
    ],
)
def test_r14_how_a_handler_without_a_call_ends(
    caller: Caller, key: str, kind: str, status: int, state: str | None, effects: int
) -> None:
    first = caller.post("/local/", {"name": "x", "kind": kind}, key=key)

    assert first.status_code == status
    assert list(Key.objects.values_list("state", flat=True)) == ([state] if state else [])
    assert Group.objects.count() == effects
    again = caller.post("/local/", {"name": "x", "kind": kind}, key=key)
    assert again.status_code == status
    if state:
        assert again.content == first.content
        assert again["Idempotent-Replayed"] == "true"
    assert Group.objects.count() == effects


def test_r14_a_refused_request_leaves_the_key_for_the_corrected_one(
    caller: Caller, key: str
) -> None:
    assert caller.post("/local/", {"name": "x", "kind": "invalid"}, key=key).status_code == 400
    assert caller.post("/local/", {"name": "x"}, key=key).status_code == 201


def test_r14_a_cancellation_leaves_nothing_and_goes_on(caller: Caller, key: str) -> None:
    with pytest.raises(SystemExit):
        caller.post("/local/", {"name": "x", "kind": "exit"}, key=key)
    assert not Key.objects.exists()
    assert not Group.objects.exists()
    assert caller.post("/local/", {"name": "x"}, key=key).status_code == 201


@pytest.mark.parametrize("kind", ["streaming", "large"])
def test_r17_an_answer_that_cannot_be_kept_is_never_an_empty_success(
    caller: Caller, key: str, kind: str
) -> None:
    first = caller.post("/local/", {"name": "x", "kind": kind}, key=key)
    again = caller.post("/local/", {"name": "x", "kind": kind}, key=key)

    assert first.status_code in (200, 201)
    assert again.status_code == 409
    assert again.json()["code"] == "result-unavailable"
    assert Group.objects.count() == 1
    assert Key.objects.get().state == "completed"


def test_r17_what_cannot_be_rendered_is_done_all_the_same(caller: Caller, key: str) -> None:
    for _ in range(2):
        answer = caller.post("/local/", {"name": "x", "kind": "unrenderable"}, key=key)
        assert (answer.status_code, answer.json()["code"]) == (409, "result-unavailable")
    assert Group.objects.count() == 1


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_r2_other_methods_by_choice(caller: Caller, key: str, method: str) -> None:
    first = caller.post("/local/", {"name": method}, key=key, method=method)
    again = caller.post("/local/", {"name": method}, key=key, method=method)
    assert first.status_code == 201
    assert again["Idempotent-Replayed"] == "true"


def test_r2_a_key_on_a_safe_method_is_ignored(caller: Caller, key: str) -> None:
    for method in ("get", "head", "options"):
        assert caller.post("/local/", key=key, method=method, body="").status_code == 200
    assert not Key.objects.exists()
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201


def test_k3_every_kind_of_handler_keeps_the_promise(caller: Caller, key: str) -> None:
    for number, path in enumerate(["/function/", "/things/", "/things/7/touch/"]):
        body = {"name": f"n{number}"}
        first = caller.post(path, body, key=key)
        again = caller.post(path, body, key=key)
        assert (first.status_code, again.content) == (201, first.content), path
        assert again["Idempotent-Replayed"] == "true"
    assert Group.objects.count() == 3


def test_r4_a_required_key_that_is_missing_is_refused(caller: Caller) -> None:
    answer = caller.post("/local/", {"name": "a"})
    assert (answer.status_code, answer.json()["code"]) == (400, "key-missing")
    assert not Group.objects.exists()


def test_r4_without_a_key_each_request_is_its_own_and_leaves_no_row(caller: Caller) -> None:
    first, second = caller.post("/keyless/"), caller.post("/keyless/")
    assert first.content != second.content
    assert not Key.objects.exists()
    assert "Idempotency-Key" not in first


def test_r4_without_a_key_an_outside_call_gets_a_minted_one(caller: Caller) -> None:
    answer = caller.post("/keyless/", {"outside": True})
    row = Key.objects.get()
    assert answer.status_code == 201
    assert answer["Idempotency-Key"] == row.key
    assert (row.state, row.call_begun) == ("completed", True)
    again = caller.post("/keyless/", {"outside": True}, key=row.key)
    assert again.content == answer.content


def test_r1_who_is_refused_today_gets_no_replay(user: User, caller: Caller, key: str) -> None:
    assert caller.post("/local/", {"name": "a"}, key=key).status_code == 201
    answer = Caller(None).post("/local/", {"name": "a"}, key=key)
    assert answer.status_code == 401
    assert b"nonce" not in answer.content


def test_r9_another_request_under_the_key_is_refused_and_changes_nothing(
    caller: Caller, key: str
) -> None:
    first = caller.post("/local/", {"name": "a"}, key=key)
    other = caller.post("/local/", {"name": "b"}, key=key)

    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert "settled" in other.json()["detail"]
    assert Group.objects.count() == 1
    assert caller.post("/local/", {"name": "a"}, key=key).content == first.content


def test_r6_a_path_argument_belongs_to_the_request(caller: Caller, key: str) -> None:
    assert caller.post("/local/1/", {"name": "a"}, key=key).status_code == 201
    assert caller.post("/local/2/", {"name": "a"}, key=key).status_code == 422


def test_r5_callers_do_not_meet_in_one_key(caller: Caller, key: str) -> None:
    bob = Caller(User.objects.create_user("bob"))
    first = caller.post("/local/", {"name": "a"}, key=key)
    other = bob.post("/local/", {"name": "b"}, key=key)
    assert (first.status_code, other.status_code) == (201, 201)
    assert "Idempotent-Replayed" not in other


def test_b7_the_quoted_and_the_bare_form_are_one_key(caller: Caller, key: str) -> None:
    caller.post("/local/", {"name": "a"}, key=key)
    again = caller.post("/local/", {"name": "a"}, key=f'"{key}"')
    assert again["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("bad", ["", "   ", "a,b", "é", "k" * 256, 'a"b'])
def test_r3_a_malformed_key_is_refused_and_nothing_runs(caller: Caller, bad: str) -> None:
    answer = caller.post("/local/", {"name": "a"}, key=bad)
    assert (answer.status_code, answer.json()["code"]) == (400, "key-invalid")
    assert not Group.objects.exists()
