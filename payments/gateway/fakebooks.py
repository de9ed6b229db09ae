"""What the gateway in memory keeps, and what becomes of what it is sent."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from idempotency.types import Applied, OutsideResult, Rejected
from payments.gateway.port import ACTION_REQUIRED, Movement, Progress, Recipient

Verdict = Applied | Rejected


class Act(enum.Enum):
    """What becomes of one send."""

    APPLY = "the money moves"
    PROCESS = "taken on, and decided by `settle`"
    DECLINE = "refused for business reasons; remembered under the key"
    REFUSE = "stated as not executed; not remembered"
    LOSE_ANSWER = "carried out, and nobody is told"
    LOSE_REQUEST = "not carried out, and nobody is told"
    NOT_SENT = "no byte leaves"


Decision = tuple[Act, str]
"""What to do, and the code of a decline."""

_UNKNOWN: Decision = (Act.DECLINE, "resource_missing")
_BY_TOKEN: dict[str, Decision] = {
    "pm_card_visa": (Act.APPLY, ""),
    "pm_card_pendingRefund": (Act.APPLY, ""),
    "pm_card_processing": (Act.PROCESS, ""),
    "pm_card_chargeDeclined": (Act.DECLINE, "generic_decline"),
    "pm_card_chargeDeclinedInsufficientFunds": (Act.DECLINE, "insufficient_funds"),
    "pm_card_chargeDeclinedExpiredCard": (Act.DECLINE, "expired_card"),
    "pm_card_authenticationRequired": (Act.DECLINE, ACTION_REQUIRED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """What is kept of one send: a charge, refund, payout or recipient, also a refused one."""

    kind: str
    key: str
    verdict: Verdict
    asked: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The gateway's id."""
        return self.verdict.result.reference

    @property
    def moved(self) -> Movement | None:
        """The money that really moved, or None."""
        if self.kind == "recipient" or not isinstance(self.verdict, Applied):
            return None
        movement = Movement.of(self.verdict.result.record)
        return movement if movement.status is Progress.SUCCEEDED else None


@dataclass(slots=True)
class Books:
    """All that is kept, in order."""

    things: list[Thing] = field(default_factory=list)

    def find(self, kind: str, gateway_id: str) -> Thing | None:
        """Return what has that id."""
        found = (thing for thing in self.things if thing.id == gateway_id)
        return next((thing for thing in found if thing.kind == kind), None)

    def under(self, kind: str, key: str) -> Thing | None:
        """Return what was made under a downstream key."""
        found = (thing for thing in self.things if thing.key == key)
        return next((thing for thing in found if thing.kind == kind), None)

    def about(self, kind: str, reference: str) -> list[Thing]:
        """Return what was made for a reference of ours."""
        found = (thing for thing in self.things if thing.asked["reference"] == reference)
        return [thing for thing in found if thing.kind == kind]

    def decide(self, kind: str, asked: Mapping[str, Any]) -> Decision:
        """Return what becomes of a send by what it asks for, as in the simulator."""
        match kind:
            case "charge":
                return _BY_TOKEN.get(asked["source"], _UNKNOWN)
            case "recipient":
                return _decide_account(asked["destination"])
            case "payout":
                return self._decide_payout(asked)
            case _:
                return self._decide_refund(asked)

    def keep(self, kind: str, key: str, asked: Mapping[str, Any], act: Act, code: str) -> Thing:
        """Carry it out and keep it."""
        gateway_id = f"{kind}_{len(self.things) + 1}"
        verdict: Verdict
        if act is Act.DECLINE:
            verdict = rejected(gateway_id, code)
        elif kind == "recipient":
            record = Recipient(id=gateway_id).as_record()
            verdict = Applied(OutsideResult(reference=gateway_id, record=record))
        else:
            status = Progress.PROCESSING if act is Act.PROCESS else Progress.SUCCEEDED
            verdict = applied(
                Movement(
                    id=gateway_id,
                    status=status,
                    amount=asked["amount"],
                    currency=self._currency(asked),
                )
            )
        thing = Thing(kind=kind, key=key, verdict=verdict, asked=asked)
        self.things.append(thing)
        return thing

    def settle(self, gateway_id: str, *, succeeded: bool) -> None:
        """Decide what is processing. Raises: StopIteration, where there is no such thing."""
        at = next(n for n, thing in enumerate(self.things) if thing.id == gateway_id)
        movement = Movement.of(self.things[at].verdict.result.record)
        verdict: Verdict = rejected(gateway_id, "failed")
        if succeeded:
            verdict = applied(replace(movement, status=Progress.SUCCEEDED))
        self.things[at] = replace(self.things[at], verdict=verdict)

    def _decide_refund(self, asked: Mapping[str, Any]) -> Decision:
        charge = self.find("charge", asked["charge"])
        if charge is None or charge.moved is None:
            return _UNKNOWN
        refunds = [t for t in self.things if t.kind == "refund" and t.asked["charge"] == charge.id]
        spent = sum(t.asked["amount"] for t in refunds if isinstance(t.verdict, Applied))
        if spent == charge.moved.amount:
            return Act.DECLINE, "charge_already_refunded"
        if spent + asked["amount"] > charge.moved.amount:
            return Act.DECLINE, "invalid_request"
        pending = charge.asked["source"] == "pm_card_pendingRefund"
        return (Act.PROCESS if pending else Act.APPLY), ""

    def _decide_payout(self, asked: Mapping[str, Any]) -> Decision:
        recipient = self.find("recipient", asked["recipient"])
        if recipient is None:
            return _UNKNOWN
        pending = recipient.asked["destination"] == "acct_pending"
        return (Act.PROCESS if pending else Act.APPLY), ""

    def _currency(self, asked: Mapping[str, Any]) -> str:
        # A refund is in its charge's currency.
        charge = self.find("charge", asked.get("charge", ""))
        return str(charge.asked["currency"] if charge else asked.get("currency", "EUR"))


def applied(movement: Movement) -> Applied:
    """Return the verdict on money that moved, or will."""
    return Applied(OutsideResult(reference=movement.id, record=movement.as_record()))


def rejected(gateway_id: str, code: str) -> Rejected:
    """Return the verdict on what was refused."""
    result = OutsideResult(reference=gateway_id, record={"id": gateway_id, "code": code})
    return Rejected(detail="It was refused.", code=code, result=result)


def _decide_account(destination: str) -> Decision:
    known = destination.startswith("acct_") and destination != "acct_invalid"
    return (Act.APPLY, "") if known else _UNKNOWN
