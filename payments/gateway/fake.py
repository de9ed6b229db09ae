"""A gateway in memory, for unit tests of what stands on the port. The contract suite runs over it as over the real one.

    fake = FakeGateway()
    with using(fake):
        fake.next(Act.LOSE_ANSWER)
        ...
    assert [effect.amount for effect in fake.effects] == [1200]

It acts as told by `next`, once per send, else by the token or account that it is sent, as the simulator does. It has no
guard: a send is one attempt.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from threading import RLock
from typing import Any

from idempotency.exceptions import CallFailed, CallRejected, CallUnknown
from idempotency.types import (
    Absent,
    Applied,
    CallReport,
    Downstream,
    LookUp,
    OpenStep,
    Outcome,
    OutsideRequest,
    OutsideResult,
)
from payments.gateway.fakebooks import Act, Books, Thing, Verdict
from payments.gateway.port import (
    ChargeRequest,
    Movement,
    PayoutRequest,
    RecipientRequest,
    RefundRequest,
)

__all__ = ["Act", "FakeGateway", "Thing"]


class FakeGateway:
    """See the module.

    Attributes:
        sends: every request that reached it, in order.
        hidden: look-ups do not find yet what exists, as in a gateway's settling time.
        unreachable: look-ups and retrievals fail.
    """

    def __init__(
        self, *, keyed: bool = True, settling_time: float = 20, key_memory: float = 86_400
    ) -> None:
        self._downstream = Downstream(
            name="gateway", keyed=keyed, settling_time=settling_time, key_memory=key_memory
        )
        self.sends: list[OutsideRequest] = []
        self.hidden = self.unreachable = False
        self._books = Books()
        self._script: list[tuple[Act, str]] = []
        self._lock = RLock()

    @property
    def things(self) -> list[Thing]:
        """What it keeps, in order."""
        return list(self._books.things)

    @property
    def effects(self) -> list[Movement]:
        """The money that really moved: what every test of a fault asks."""
        return [moved for thing in self.things if (moved := thing.moved)]

    def next(self, *acts: Act, code: str = "generic_decline") -> None:
        """Say what becomes of the next sends; `code` is a decline's."""
        self._script += [(act, code) for act in acts]

    def settle(self, gateway_id: str, *, succeeded: bool) -> None:
        """Decide what is processing."""
        with self._lock:
            self._books.settle(gateway_id, succeeded=succeeded)

    # -- the port ------------------------------------------------------------------------------------------------------

    @property
    def downstream(self) -> Downstream:
        return self._downstream

    def charge_request(self, asked: ChargeRequest) -> Mapping[str, Any]:
        return asdict(asked)

    def charge(self, request: OutsideRequest) -> OutsideResult:
        return self._send("charge", request)

    def look_up_charge(self, step: OpenStep) -> LookUp:
        return self._look_up("charge", step)

    def retrieve_charge(self, gateway_id: str) -> LookUp:
        return self._retrieve("charge", gateway_id)

    def refund_request(self, asked: RefundRequest) -> Mapping[str, Any]:
        return asdict(asked)

    def refund(self, request: OutsideRequest) -> OutsideResult:
        return self._send("refund", request)

    def look_up_refund(self, step: OpenStep) -> LookUp:
        return self._look_up("refund", step)

    def retrieve_refund(self, gateway_id: str) -> LookUp:
        return self._retrieve("refund", gateway_id)

    def recipient_request(self, asked: RecipientRequest) -> Mapping[str, Any]:
        return asdict(asked)

    def create_recipient(self, request: OutsideRequest) -> OutsideResult:
        return self._send("recipient", request)

    def look_up_recipient(self, step: OpenStep) -> LookUp:
        return self._look_up("recipient", step)

    def payout_request(self, asked: PayoutRequest) -> Mapping[str, Any]:
        return asdict(asked)

    def pay(self, request: OutsideRequest) -> OutsideResult:
        return self._send("payout", request)

    def look_up_payout(self, step: OpenStep) -> LookUp:
        return self._look_up("payout", step)

    def retrieve_payout(self, gateway_id: str) -> LookUp:
        return self._retrieve("payout", gateway_id)

    # -- how it acts ---------------------------------------------------------------------------------------------------

    def _send(self, kind: str, request: OutsideRequest) -> OutsideResult:
        with self._lock:
            act, code = self._script.pop(0) if self._script else (None, "")
            if act is Act.NOT_SENT:
                raise _unreachable()
            self.sends.append(request)
            if act is Act.REFUSE:
                raise CallFailed("Not executed.", sent=True, report=_report(Outcome.TRANSIENT))
            if act is not Act.LOSE_REQUEST:
                verdict = self._carried_out(kind, request, act, code).verdict
                if act is not Act.LOSE_ANSWER:
                    return _told(verdict)
            raise CallUnknown("No answer.", report=_report(Outcome.AMBIGUOUS))

    def _carried_out(self, kind: str, request: OutsideRequest, act: Act | None, code: str) -> Thing:
        key = request.downstream_key
        remembered = self._books.under(kind, key) if self.downstream.keyed else None
        if remembered is not None:
            return remembered
        asked = json.loads(request.payload)
        if act is None or act is Act.LOSE_ANSWER:
            act, code = self._books.decide(kind, asked)
        return self._books.keep(kind, key, asked, act, code)

    def _look_up(self, kind: str, step: OpenStep) -> LookUp:
        ours = json.loads(step.payload)["reference"]
        if step.reference:
            return self._retrieve(kind, step.reference, about=ours)
        self._require_reachable()
        with self._lock:
            found = self._books.about(kind, ours)
        found = [] if self.hidden else found
        moved = [thing.verdict.result for thing in found if isinstance(thing.verdict, Applied)]
        if moved and kind == "recipient":
            return Applied(moved[0])
        if moved:
            return Applied(moved[0], again=tuple(result.reference for result in moved[1:]))
        answers = [thing.verdict for thing in found if thing.key == step.downstream_key]
        return answers[-1] if answers else Absent()

    def _retrieve(self, kind: str, gateway_id: str, *, about: str = "") -> LookUp:
        self._require_reachable()
        with self._lock:
            found = self._books.find(kind, gateway_id)
        if found is None or about not in ("", found.asked["reference"]):
            return Absent()
        return found.verdict

    def _require_reachable(self) -> None:
        if self.unreachable:
            raise _unreachable()


def _told(verdict: Verdict) -> OutsideResult:
    if isinstance(verdict, Applied):
        return verdict.result
    raise CallRejected(
        verdict.detail,
        code=verdict.code,
        reference=verdict.result.reference,
        record=verdict.result.record,
        report=_report(Outcome.FATAL),
    )


def _unreachable() -> CallFailed:
    return CallFailed(
        "It could not be reached.", code="gateway-unavailable", report=_report(Outcome.TRANSIENT)
    )


def _report(outcome: Outcome) -> CallReport:
    return CallReport(attempts=1, seconds=0.0, outcome=outcome)
