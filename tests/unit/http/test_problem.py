"""Problems (R9, R10, R14, R17, R20; RFC 9457): every code of the contract, the same shape everywhere."""

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.views import exception_handler as drf_handler

from idempotency.clock import Clock
from idempotency.exceptions import (
    CallError,
    CallFailed,
    CallRejected,
    CallUnknown,
    LedgerUnavailable,
    Refused,
)
from idempotency.http import problem
from idempotency.types import State
from tests.unit.http.requests import handled

CONTRACT = {
    "key-missing": 400,
    "key-invalid": 400,
    "key-reused": 422,
    "in-progress": 409,
    "outcome-unknown": 504,
    "result-unavailable": 409,
    "result-expired": 410,
    "ledger-unavailable": 503,
    "overloaded": 503,
    "no-time": 503,
    "circuit-open": 503,
    "gateway-unavailable": 503,
    "read-only": 503,
}
ONE_OF_EACH: list[problem.Problem] = [
    problem.KeyMissing(),
    problem.KeyInvalid(),
    problem.KeyReused(first=State.COMPLETED),
    problem.InProgress(),
    problem.OutcomeUnknown(repeated=False),
    problem.ResultUnavailable(),
    problem.ResultExpired(),
    problem.LedgerDown(),
    problem.Overloaded(),
    problem.NoTime(),
    problem.CircuitOpen(),
    problem.GatewayUnavailable(),
    problem.ReadOnly(),
]


def test_every_code_of_the_contract_has_its_status_and_its_page() -> None:
    assert {one.code: one.status_code for one in ONE_OF_EACH} == CONTRACT
    assert set(CONTRACT) <= set(problem.catalogue())
    for code, entry in problem.catalogue().items():
        assert entry.code == code
        assert entry.title
        assert entry.when.endswith(".")
        assert entry.client.endswith(".")


@pytest.mark.parametrize("one", ONE_OF_EACH, ids=lambda one: one.code)
def test_a_problem_is_a_plain_drf_exception_and_a_problem_document(one: problem.Problem) -> None:
    """RFC 9457 §3; a host with its own exception handler keeps code and Retry-After."""
    response = handled(one)
    assert response["Content-Type"] == "application/problem+json"
    body = response.json
    assert list(body)[:5] == ["type", "title", "status", "detail", "code"]
    assert body["type"] == f"/problems/{one.code}/"
    assert body["status"] == response.status_code == one.status_code
    assert body["title"] == problem.catalogue()[one.code].title
    assert body["code"] == one.code
    assert isinstance(body["detail"], str)
    assert one.get_codes() == one.code

    theirs = drf_handler(one, {})
    assert theirs is not None
    assert theirs.data == {"detail": one.detail}
    assert theirs.headers.get("Retry-After") == response.headers.get("Retry-After")
    assert (one.wait is None) == ("Retry-After" not in response.headers)


def test_what_can_be_tried_again_says_when() -> None:
    """R10, K5: in progress has a Retry-After, a mismatch has none."""
    waits = {one.code for one in ONE_OF_EACH if one.wait}
    assert waits == {one.code for one in ONE_OF_EACH if one.members.get("retryable")}
    assert "in-progress" in waits
    assert "key-reused" not in waits


@pytest.mark.parametrize(
    ("first", "state", "safe"),
    [
        (State.COMPLETED, "settled", True),
        (State.IN_PROGRESS, "in_progress", False),
        (State.UNKNOWN, "unknown", False),
        (State.RELEASED, "released", True),
    ],
)
def test_a_reused_key_says_how_far_the_first_is_and_what_differs(
    first: State, state: str, safe: bool
) -> None:
    """R9, C2."""
    body = handled(
        problem.KeyReused(
            first=first, differing=["body", "query"], operation_ref="7", resource="/api/payments/1/"
        )
    ).json
    assert body["operation_state"] == state
    assert body["differing"] == ["body", "query"]
    assert body["safe_new_key"] is safe
    assert body["retryable"] is False
    assert body["operation_ref"] == "7"
    assert body["resource"] == "/api/payments/1/"
    assert "body, query" in body["detail"]


@override_settings(IDEMPOTENCY={"MISMATCH_STATUS": 409})
def test_a_host_that_wants_409_for_a_mismatch_gets_it() -> None:
    """R9."""
    response = handled(problem.KeyReused(first=State.COMPLETED))
    assert response.status_code == response.json["status"] == 409


@pytest.mark.parametrize(("repeated", "status"), [(False, 504), (True, 409)])
@override_settings(IDEMPOTENCY={"RECONCILE_EVERY": 7})
def test_an_unknown_outcome_forbids_a_new_key(repeated: bool, status: int) -> None:
    """R14."""
    response = handled(problem.OutcomeUnknown(repeated=repeated, operation_ref="7"))
    assert response.status_code == response.json["status"] == status
    assert response.json["safe_new_key"] is False
    assert response.json["operation_ref"] == "7"
    assert 7 <= int(response["Retry-After"]) <= 11


@given(st.floats(0, 10**6), st.floats(0, 1))
def test_retry_after_is_whole_at_least_one_never_shorter_and_spread(
    asked: float, dice: float
) -> None:
    """R10, R25."""
    clock = Clock(uniform=lambda least, most: least + dice * (most - least))
    wait = problem.jittered(asked, clock=clock)
    assert isinstance(wait, int)
    assert max(1, asked) <= wait <= max(1, asked) * 1.5 + 3


def test_those_turned_away_together_come_back_apart() -> None:
    """R10."""
    assert {problem.InProgress().wait for _ in range(200)} == {1, 2}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CallFailed(code="circuit-open", retry_after=9), 503, "circuit-open"),
        (CallFailed(code="bulkhead-full"), 503, "overloaded"),
        (CallFailed(code="overloaded"), 503, "overloaded"),
        (CallFailed(code="no-time"), 503, "no-time"),
        (CallFailed(), 503, "gateway-unavailable"),
        (CallFailed(code="anything", sent=True), 503, "gateway-unavailable"),
        (CallUnknown(), 504, "outcome-unknown"),
        (CallRejected(), 402, "call-rejected"),
        (CallRejected("No.", code="card_declined"), 402, "card-declined"),
        (LedgerUnavailable(), 503, "ledger-unavailable"),
        (Refused("", code="overloaded", retry_after=1), 503, "overloaded"),
        (Refused("", code="no-time", retry_after=1), 503, "no-time"),
        (Refused("", code="read-only", retry_after=30), 503, "read-only"),
    ],
)
def test_how_a_call_ended_is_told_to_the_caller(error: Exception, status: int, code: str) -> None:
    """R14, R24."""
    response = handled(error)
    assert (response.status_code, response.json["code"]) == (status, code)
    assert ("Retry-After" in response.headers) == (status != 402)


def test_a_call_that_failed_keeps_its_retry_after_and_leaves_the_key_free() -> None:
    """R14, R25."""
    one = problem.from_call_error(CallFailed(code="circuit-open", retry_after=9), operation_ref="7")
    assert one.wait is not None
    assert 9 <= one.wait <= 14
    assert one.members == {"retryable": True, "safe_new_key": True, "operation_ref": "7"}


def test_work_turned_away_at_the_door_promises_nothing_about_its_key() -> None:
    """R29, R30: the key was not read, and may stand for work that was begun before."""
    one = problem.from_refusal(Refused("", code="overloaded", retry_after=3))
    assert one.members == {"retryable": True, "safe_new_key": False}
    assert one.wait is not None
    assert 3 <= one.wait <= 5


def test_the_words_of_another_system_reach_no_caller_but_those_of_a_refusal() -> None:
    assert "10.0.0.7" not in str(problem.from_call_error(CallFailed("no route to 10.0.0.7")).detail)
    assert "10.0.0.7" not in str(problem.from_call_error(CallUnknown("reset by 10.0.0.7")).detail)
    assert problem.from_call_error(CallRejected("Declined.")).detail == "Declined."
    assert isinstance(problem.from_call_error(CallError("odd")), problem.GatewayUnavailable)
