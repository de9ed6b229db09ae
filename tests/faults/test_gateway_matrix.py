"""R24, every cell: each kind of fault, for each movement of money, on a keyed and an unkeyed gateway.

Over real sockets, against the simulator in its own process. What happened is asked of the simulator: the money that
moved, and the requests that it received.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from idempotency.exceptions import CallFailed, CallUnknown
from idempotency.types import OutsideRequest, OutsideResult
from payments.gateway import ChargeRequest, PayoutRequest, RefundRequest
from payments.gateway.guarded import GuardedGateway
from payments.simulator.faults.kinds import KINDS, Applied, Step
from tests.contract.simulator_process import Gateway, running
from tests.support.gateways import gateway_at, journal, outside_request

pytestmark = pytest.mark.sampled(6)

# Long enough for an attempt without a fault on a busy machine; a fault that lasts is given less.
PATIENT_SECONDS, LASTING_SECONDS = 10.0, 0.8
ATTEMPTS = 3

# What a kind means. Everything that is not named here is ambiguous, and gone at the next attempt.
NOT_EXECUTED = {"refuse_503", "rate_limit_429"}
OUR_FAULT = {"error_400_kept_before"}
HARMLESS = {"idle_close_after", "idle_reset_after", "slow_after"}
# The gateway remembers its own 500, so that each repeat gets it again.
KEPT = {"error_500_after", "error_500_kept_before"}
# Its effect comes later, while the key is in use: a test of its own.
LATE = {"late_success"}
AMBIGUOUS = set(KINDS) - NOT_EXECUTED - OUR_FAULT - HARMLESS - KEPT - LATE


@dataclass(frozen=True)
class Verb:
    path: str
    effect: str
    prepare: Callable[[GuardedGateway], Mapping[str, Any]]
    send: Callable[[GuardedGateway, OutsideRequest], OutsideResult]


def _charge(gateway: GuardedGateway) -> Mapping[str, Any]:
    return gateway.charge_request(
        ChargeRequest(
            amount=1000,
            currency="EUR",
            source="pm_card_visa",
            description="",
            order_id="o-1",
            reference="charge-1",
        )
    )


def _refund(gateway: GuardedGateway) -> Mapping[str, Any]:
    charge = gateway.charge(outside_request(_charge(gateway), key="the-charge"))
    return gateway.refund_request(
        RefundRequest(amount=400, charge=charge.reference, reason="", reference="refund-1")
    )


def _payout(gateway: GuardedGateway) -> Mapping[str, Any]:
    return gateway.payout_request(
        PayoutRequest(amount=400, currency="EUR", recipient="acct_ok", reference="payout-1")
    )


VERBS = {
    "charge": Verb("/v1/payment_intents", "charge", _charge, lambda g, r: g.charge(r)),
    "refund": Verb("/v1/refunds", "refund", _refund, lambda g, r: g.refund(r)),
    "payout": Verb("/v1/payouts", "payout", _payout, lambda g, r: g.pay(r)),
}


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(tmp_path_factory.mktemp("simulator")) as gateway:
        yield gateway


@pytest.fixture(params=[True, False], ids=["keyed", "unkeyed"])
def keyed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=list(VERBS))
def cell(request: pytest.FixtureRequest, simulator: Gateway, keyed: bool) -> "Cell":
    simulator.control("POST", "reset")
    simulator.configure(idempotency=keyed)
    return Cell(simulator, VERBS[request.param], keyed=keyed)


class Cell:
    """One movement of money, ready to be sent, and what the simulator saw of it."""

    def __init__(self, simulator: Gateway, verb: Verb, *, keyed: bool) -> None:
        self.simulator, self.verb = simulator, verb
        self.keyed = keyed
        self.gateway = self._made(PATIENT_SECONDS)
        with journal():
            self.request = outside_request(verb.prepare(self.gateway))

    def fail_with(self, kind: str, *, times: int = 1, seconds: float | None = None) -> None:
        if seconds is None and _lasts(kind):
            seconds, self.gateway = 30.0, self._made(LASTING_SECONDS)
        more = {} if seconds is None else {"seconds": seconds}
        self.simulator.add_fault(kind, self.verb.path, times=times, **more)

    def send(self) -> OutsideResult:
        """Send it; whatever comes of it, one layer has retried: ours."""
        before = len(self._received())
        reported = 0
        with journal() as sends:
            try:
                result = self.verb.send(self.gateway, self.request)
            except (CallFailed, CallUnknown) as error:
                reported = error.report.attempts if error.report else 0
                raise
            else:
                reported = len(sends)
            finally:
                self.attempts = len(sends)
                assert reported == self.attempts == len(self._received()) - before
        return result

    def effects(self) -> int:
        return sum(effect["kind"] == self.verb.effect for effect in self.simulator.effects())

    def keys(self) -> set[str]:
        return {request["idempotency_key"] for request in self._received()}

    def _made(self, seconds: float) -> GuardedGateway:
        return gateway_at(
            self.simulator.url, keyed=self.keyed, attempts=ATTEMPTS, attempt_timeout=seconds
        )

    def _received(self) -> list[dict[str, Any]]:
        return [r for r in self.simulator.requests() if r["path"] == self.verb.path]


def _applied_by(kind: str) -> int:
    return 1 if KINDS[kind].applied is Applied.NOW else 0


def _lasts(kind: str) -> bool:
    return not {Step.STALL, Step.DRIP}.isdisjoint(KINDS[kind].wire)


@pytest.mark.parametrize("kind", sorted(AMBIGUOUS))
def test_r24_an_ambiguous_send_is_repeated_only_on_a_keyed_gateway(
    cell: Cell, kind: str, keyed: bool
) -> None:
    cell.fail_with(kind)
    if keyed:
        assert cell.send().record["status"] == "succeeded"
        assert (cell.attempts, cell.effects()) == (2, 1)
        assert len(cell.keys()) == 1
    else:
        with pytest.raises(CallUnknown):
            cell.send()
        assert (cell.attempts, cell.effects()) == (1, _applied_by(kind))


@pytest.mark.parametrize("kind", sorted(k for k in AMBIGUOUS if not _lasts(k)))
def test_r24_a_series_that_stays_ambiguous_is_unknown(cell: Cell, kind: str, keyed: bool) -> None:
    cell.fail_with(kind, times=ATTEMPTS)
    with pytest.raises(CallUnknown):
        cell.send()
    assert cell.attempts == (ATTEMPTS if keyed else 1)
    assert cell.effects() == _applied_by(kind)


@pytest.mark.parametrize("kind", sorted(NOT_EXECUTED))
def test_r24_what_the_gateway_says_was_not_executed_is_always_repeated(
    cell: Cell, kind: str
) -> None:
    cell.fail_with(kind, times=2)
    assert cell.send().record["status"] == "succeeded"
    assert (cell.attempts, cell.effects()) == (3, 1)


@pytest.mark.parametrize("kind", sorted(NOT_EXECUTED))
def test_r24_attempts_spent_on_a_stated_refusal_are_a_failure(cell: Cell, kind: str) -> None:
    cell.fail_with(kind, times=ATTEMPTS)
    with pytest.raises(CallFailed) as raised:
        cell.send()
    assert raised.value.sent
    assert (cell.attempts, cell.effects()) == (ATTEMPTS, 0)


@pytest.mark.parametrize("kind", sorted(NOT_EXECUTED))
def test_r24_one_ambiguous_send_makes_the_series_ambiguous(
    cell: Cell, kind: str, keyed: bool
) -> None:
    cell.fail_with("reset_before")
    cell.fail_with(kind, times=2)
    with pytest.raises(CallUnknown):
        cell.send()
    assert cell.attempts == (ATTEMPTS if keyed else 1)


@pytest.mark.parametrize("kind", sorted(KEPT))
def test_r24_a_500_that_the_gateway_keeps_stays_unknown(cell: Cell, kind: str, keyed: bool) -> None:
    cell.fail_with(kind)
    with pytest.raises(CallUnknown):
        cell.send()
    assert cell.attempts == (ATTEMPTS if keyed else 1)
    assert cell.effects() == _applied_by(kind)


@pytest.mark.parametrize("kind", sorted(OUR_FAULT))
def test_r14_a_refusal_of_our_account_is_a_failure_at_once(cell: Cell, kind: str) -> None:
    cell.fail_with(kind)
    with pytest.raises(CallFailed) as raised:
        cell.send()
    assert (raised.value.code, raised.value.sent) == ("gateway-unavailable", True)
    assert (cell.attempts, cell.effects()) == (1, 0)


@pytest.mark.parametrize("kind", sorted(HARMLESS))
def test_what_only_takes_its_time_is_no_fault(cell: Cell, kind: str) -> None:
    cell.fail_with(kind, seconds=0.05)
    assert cell.send().record["status"] == "succeeded"
    assert (cell.attempts, cell.effects()) == (1, 1)


def test_r24_a_late_effect_is_unknown_and_comes_once(cell: Cell, keyed: bool) -> None:
    cell.fail_with("late_success", seconds=1.0)
    with pytest.raises(CallUnknown):
        cell.send()
    # Keyed, the repeats are told that the key is in use: they wait, and ask again under it.
    assert cell.attempts == (ATTEMPTS if keyed else 1)
    assert len(cell.keys()) == 1
