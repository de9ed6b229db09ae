"""Stages for the gateway port's contract suite: an implementation, and what a test can make happen behind its back."""

from collections.abc import Callable
from typing import Protocol

from idempotency.types import LookUp, OpenStep, OutsideRequest, OutsideResult
from payments.gateway import (
    ChargeRequest,
    Gateway,
    PayoutRequest,
    RecipientRequest,
    RefundRequest,
)
from payments.gateway.fake import Act, FakeGateway
from tests.contract import simulator_process
from tests.support.gateways import gateway_at, open_step, outside_request

_PATHS = {
    "charge": "/v1/payment_intents",
    "refund": "/v1/refunds",
    "recipient": "/v1/accounts",
    "payout": "/v1/payouts",
}
VERBS = tuple(_PATHS)
MOVING = ("charge", "refund", "payout")


class Stage(Protocol):
    """One gateway, and what a test can make happen behind its back."""

    gateway: Gateway

    def lose_answer(self, verb: str) -> None: ...

    def lose_request(self, verb: str) -> None: ...

    def refuse(self, verb: str) -> None: ...

    def hide(self) -> None: ...

    def cut_off(self, verb: str) -> None: ...

    def settle(self, gateway_id: str, *, succeeded: bool) -> None: ...

    def effects(self) -> list[int]: ...


class FakeStage:
    def __init__(self) -> None:
        self.fake = FakeGateway()
        self.gateway: Gateway = self.fake

    def lose_answer(self, verb: str) -> None:
        self.fake.next(Act.LOSE_ANSWER)

    def lose_request(self, verb: str) -> None:
        self.fake.next(Act.LOSE_REQUEST)

    def refuse(self, verb: str) -> None:
        self.fake.next(Act.REFUSE)

    def hide(self) -> None:
        self.fake.hidden = True

    def cut_off(self, verb: str) -> None:
        self.fake.unreachable = True

    def settle(self, gateway_id: str, *, succeeded: bool) -> None:
        self.fake.settle(gateway_id, succeeded=succeeded)

    def effects(self) -> list[int]:
        return [moved.amount for moved in self.fake.effects]


class SimulatorStage:
    def __init__(self, simulator: simulator_process.Gateway) -> None:
        self.simulator = simulator
        self.gateway: Gateway = gateway_at(simulator.url, attempts=1)

    def lose_answer(self, verb: str) -> None:
        self.simulator.add_fault("reset_after", _PATHS[verb], match={"method": "POST"})

    def lose_request(self, verb: str) -> None:
        self.simulator.add_fault("reset_before", _PATHS[verb], match={"method": "POST"})

    def refuse(self, verb: str) -> None:
        self.simulator.add_fault("refuse_503", _PATHS[verb], match={"method": "POST"})

    def hide(self) -> None:
        self.simulator.configure(lookup_lag=60)

    def cut_off(self, verb: str) -> None:
        path = "/v1/payment_intents/search" if verb == "charge" else _PATHS[verb]
        self.simulator.add_fault("refuse_503", path, match={"method": "GET"})

    def settle(self, gateway_id: str, *, succeeded: bool) -> None:
        how = "succeeded" if succeeded else "failed"
        self.simulator.control("POST", "webhooks", {"settle": gateway_id, "as": how})

    def effects(self) -> list[int]:
        return [effect["amount"] for effect in self.simulator.effects()]


def asked(
    gateway: Gateway,
    verb: str,
    *,
    reference: str = "ref-1",
    amount: int = 700,
    source: str = "pm_card_visa",
    destination: str = "acct_ok",
) -> OutsideRequest:
    """Return a send that is ready to go; what it stands on is there already."""
    match verb:
        case "charge":
            params = gateway.charge_request(
                ChargeRequest(
                    amount=amount,
                    currency="EUR",
                    source=source,
                    description="Two books",
                    order_id="o-1",
                    reference=reference,
                )
            )
        case "refund":
            charge = asked(
                gateway, "charge", reference=f"of-{reference}", amount=1000, source=source
            )
            params = gateway.refund_request(
                RefundRequest(
                    amount=amount,
                    charge=gateway.charge(charge).reference,
                    reason="too late",
                    reference=reference,
                )
            )
        case "recipient":
            params = gateway.recipient_request(
                RecipientRequest(destination=destination, reference=reference)
            )
        case _:
            recipient = asked(gateway, "recipient", reference=reference, destination=destination)
            params = gateway.payout_request(
                PayoutRequest(
                    amount=amount,
                    currency="EUR",
                    recipient=gateway.create_recipient(recipient).reference,
                    reference=reference,
                )
            )
    return outside_request(params, key=f"key-of-{verb}-{reference}")


def send(gateway: Gateway, verb: str, request: OutsideRequest) -> OutsideResult:
    sends: dict[str, Callable[[OutsideRequest], OutsideResult]] = {
        "charge": gateway.charge,
        "refund": gateway.refund,
        "recipient": gateway.create_recipient,
        "payout": gateway.pay,
    }
    return sends[verb](request)


def look_up(gateway: Gateway, verb: str, request: OutsideRequest, *, reference: str = "") -> LookUp:
    look_ups: dict[str, Callable[[OpenStep], LookUp]] = {
        "charge": gateway.look_up_charge,
        "refund": gateway.look_up_refund,
        "recipient": gateway.look_up_recipient,
        "payout": gateway.look_up_payout,
    }
    return look_ups[verb](open_step(request, reference=reference))


def retrieve(gateway: Gateway, verb: str, gateway_id: str) -> LookUp:
    retrievals: dict[str, Callable[[str], LookUp]] = {
        "charge": gateway.retrieve_charge,
        "refund": gateway.retrieve_refund,
        "payout": gateway.retrieve_payout,
    }
    return retrievals[verb](gateway_id)
