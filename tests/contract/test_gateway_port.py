"""The port's promises, over each implementation: the fake, and Stripe's adapter on the real simulator process."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from idempotency.exceptions import CallError, CallFailed, CallRejected, CallUnknown
from idempotency.types import (
    Absent,
    Applied,
    OutsideRequest,
    Rejected,
)
from payments.gateway import (
    ACTION_REQUIRED,
    ChargeRequest,
    Gateway,
    Movement,
    Progress,
    Recipient,
)
from tests.contract import simulator_process
from tests.contract.simulator_process import running
from tests.support.gateways import journal
from tests.support.gatewaystages import (
    MOVING,
    VERBS,
    FakeStage,
    SimulatorStage,
    Stage,
    asked,
    look_up,
    retrieve,
    send,
)

pytestmark = pytest.mark.sampled(2)


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[simulator_process.Gateway]:
    data: Path = tmp_path_factory.mktemp("simulator")
    with running(data) as gateway:
        yield gateway


@pytest.fixture(params=["fake", "stripe"])
def stage(request: pytest.FixtureRequest) -> Stage:
    if request.param == "fake":
        return FakeStage()
    simulator: simulator_process.Gateway = request.getfixturevalue("simulator")
    simulator.control("POST", "reset")
    return SimulatorStage(simulator)


@pytest.fixture(autouse=True)
def _journalled() -> Iterator[None]:
    with journal():
        yield


def test_an_implementation_is_a_gateway(stage: Stage) -> None:
    assert isinstance(stage.gateway, Gateway)
    assert stage.gateway.downstream.keyed


def test_r23_what_is_frozen_is_plain_json_and_the_same_every_time(stage: Stage) -> None:
    order = ChargeRequest(
        amount=1, currency="EUR", source="pm_card_visa", description="", order_id="o", reference="r"
    )
    frozen = {json.dumps(stage.gateway.charge_request(order), sort_keys=True) for _ in range(3)}
    assert len(frozen) == 1
    assert '"r"' in frozen.pop()


@pytest.mark.parametrize("verb", MOVING)
def test_a_send_moves_the_money_and_says_what_moved(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    before = stage.effects()
    result = send(stage.gateway, verb, request)
    moved = Movement.of(result.record)
    assert (moved.status, moved.amount, moved.currency) == (Progress.SUCCEEDED, 700, "EUR")
    assert moved.id == result.reference
    assert moved.as_record() == result.record
    assert stage.effects() == [*before, 700]


def test_a_recipient_moves_no_money(stage: Stage) -> None:
    result = send(stage.gateway, "recipient", asked(stage.gateway, "recipient"))
    assert Recipient.of(result.record).id == result.reference
    assert stage.effects() == []


@pytest.mark.parametrize("verb", VERBS)
def test_r23_a_repeat_under_the_same_key_gets_the_first_result(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    first = send(stage.gateway, verb, request)
    moved = stage.effects()
    assert send(stage.gateway, verb, request) == first
    assert stage.effects() == moved


@pytest.mark.parametrize("verb", VERBS)
def test_r24_a_lost_answer_is_unknown_and_a_look_up_finds_it(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    stage.lose_answer(verb)
    with pytest.raises(CallUnknown) as raised:
        send(stage.gateway, verb, request)
    assert raised.value.report is not None
    found = look_up(stage.gateway, verb, request)
    assert isinstance(found, Applied)
    # The record is the one that the send would have given (Note [Records]).
    assert send(stage.gateway, verb, request) == found.result


@pytest.mark.parametrize("verb", VERBS)
def test_r24_a_lost_request_is_unknown_and_a_look_up_finds_nothing(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    before = stage.effects()
    stage.lose_request(verb)
    with pytest.raises(CallUnknown):
        send(stage.gateway, verb, request)
    assert look_up(stage.gateway, verb, request) == Absent()
    assert stage.effects() == before


@pytest.mark.parametrize("verb", VERBS)
def test_r24_a_stated_refusal_is_a_failure_that_was_sent(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    stage.refuse(verb)
    with pytest.raises(CallFailed) as raised:
        send(stage.gateway, verb, request)
    assert raised.value.sent
    # It was not remembered: the same key may be sent again, and is then carried out.
    assert send(stage.gateway, verb, request).reference


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("pm_card_chargeDeclined", "generic_decline"),
        ("pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card"),
        ("pm_card_authenticationRequired", ACTION_REQUIRED),
    ],
)
def test_r14_a_decline_is_a_rejection_with_its_most_exact_code(
    stage: Stage, source: str, code: str
) -> None:
    request = asked(stage.gateway, "charge", source=source)
    with pytest.raises(CallRejected) as raised:
        stage.gateway.charge(request)
    assert raised.value.code == code
    assert raised.value.detail
    assert raised.value.reference
    assert raised.value.record["id"] == raised.value.reference
    assert stage.effects() == []
    found = look_up(stage.gateway, "charge", request)
    assert isinstance(found, Rejected)
    assert (found.code, found.result.reference) == (code, raised.value.reference)
    assert found.result.record == raised.value.record
    assert retrieve(stage.gateway, "charge", raised.value.reference) == found


@pytest.mark.parametrize(
    ("verb", "wrong"),
    [
        ("charge", {"source": "pm_nobody_knows"}),
        ("recipient", {"destination": "acct_invalid"}),
        ("refund", {"amount": 1001}),
    ],
)
def test_r14_what_the_caller_got_wrong_is_a_rejection(
    stage: Stage, verb: str, wrong: dict[str, object]
) -> None:
    request = asked(stage.gateway, verb, **wrong)  # type: ignore[arg-type]
    before = stage.effects()
    with pytest.raises(CallRejected):
        send(stage.gateway, verb, request)
    assert stage.effects() == before


def test_r42_a_refund_of_what_is_refunded_already_is_a_rejection(stage: Stage) -> None:
    request = asked(stage.gateway, "refund", amount=1000)
    send(stage.gateway, "refund", request)
    again = OutsideRequest("another-key", request.payload)
    with pytest.raises(CallRejected) as raised:
        send(stage.gateway, "refund", again)
    assert raised.value.code == "charge_already_refunded"


@pytest.mark.parametrize("succeeded", [True, False])
@pytest.mark.parametrize(
    ("verb", "slow"),
    [
        ("charge", {"source": "pm_card_processing"}),
        ("refund", {"source": "pm_card_pendingRefund"}),
        ("payout", {"destination": "acct_pending"}),
    ],
)
def test_what_takes_time_is_processing_until_it_is_decided(
    stage: Stage, verb: str, slow: dict[str, str], succeeded: bool
) -> None:
    request = asked(stage.gateway, verb, **slow)  # type: ignore[arg-type]
    before = stage.effects()
    result = send(stage.gateway, verb, request)
    assert Movement.of(result.record).status is Progress.PROCESSING
    assert retrieve(stage.gateway, verb, result.reference) == Applied(result)
    assert look_up(stage.gateway, verb, request) == Applied(result)
    assert stage.effects() == before
    stage.settle(result.reference, succeeded=succeeded)
    decided = retrieve(stage.gateway, verb, result.reference)
    assert look_up(stage.gateway, verb, request) == decided
    if succeeded:
        assert isinstance(decided, Applied)
        assert Movement.of(decided.result.record).status is Progress.SUCCEEDED
        assert stage.effects() == [*before, 700]
    else:
        assert isinstance(decided, Rejected)
        assert decided.result.reference == result.reference
        assert stage.effects() == before


@pytest.mark.parametrize("verb", VERBS)
def test_r36_what_is_not_found_yet_is_absent_and_found_by_its_id(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    result = send(stage.gateway, verb, request)
    stage.hide()
    assert look_up(stage.gateway, verb, request) == Absent()
    assert look_up(stage.gateway, verb, request, reference=result.reference) == Applied(result)


@pytest.mark.parametrize("verb", VERBS)
def test_r36_a_look_up_that_fails_is_no_verdict(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    stage.cut_off(verb)
    with pytest.raises(CallError) as raised:
        look_up(stage.gateway, verb, request)
    assert isinstance(raised.value, CallFailed)


@pytest.mark.parametrize("verb", MOVING)
def test_an_id_that_the_gateway_does_not_know_is_absent(stage: Stage, verb: str) -> None:
    assert retrieve(stage.gateway, verb, "xx_nobody_knows") == Absent()


def test_r23_a_refusal_of_an_earlier_series_says_nothing_about_this_one(stage: Stage) -> None:
    request = asked(stage.gateway, "charge", source="pm_card_chargeDeclined")
    with pytest.raises(CallRejected):
        stage.gateway.charge(request)
    rotated = OutsideRequest("the-next-key", request.payload)
    assert look_up(stage.gateway, "charge", rotated) == Absent()


def test_r23_money_that_moved_for_our_reference_counts_under_any_key(stage: Stage) -> None:
    request = asked(stage.gateway, "charge")
    result = stage.gateway.charge(request)
    rotated = OutsideRequest("the-next-key", request.payload)
    assert look_up(stage.gateway, "charge", rotated) == Applied(result)


@pytest.mark.parametrize("verb", VERBS)
def test_a_look_up_tells_two_references_apart(stage: Stage, verb: str) -> None:
    one = asked(stage.gateway, verb, reference="ref-1")
    other = asked(stage.gateway, verb, reference="ref-2")
    result = send(stage.gateway, verb, one)
    assert look_up(stage.gateway, verb, other) == Absent()
    assert look_up(stage.gateway, verb, one) == Applied(result)
    # Nor is the other's the one of which somebody gives the id by mistake.
    assert look_up(stage.gateway, verb, other, reference=result.reference) == Absent()


@pytest.mark.parametrize("verb", ["charge", "payout"])
def test_what_moved_twice_for_one_reference_is_told(stage: Stage, verb: str) -> None:
    request = asked(stage.gateway, verb)
    first = send(stage.gateway, verb, request)
    second = send(stage.gateway, verb, OutsideRequest("another-key", request.payload))
    assert look_up(stage.gateway, verb, request) == Applied(first, again=(second.reference,))


def test_a_reference_may_hold_any_character(stage: Stage) -> None:
    request = asked(stage.gateway, "charge", reference='o\'brien \\ "x" & ü=1')
    request = OutsideRequest("key-1", request.payload)
    result = stage.gateway.charge(request)
    assert look_up(stage.gateway, "charge", request) == Applied(result)
