"""The storm's script, drawn from its seed: what is asked, how clients behave, what breaks and when.

To add a kind of intent, add a line to `_INTENTS`; to add something that breaks, a line to `BLOWS`.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from payments.simulator.faults.kinds import KINDS

ACCOUNTS = ("main", "savings")
GATEWAY_PATHS = ("/v1/payment_intents", "/v1/refunds", "/v1/payouts", "/v1/accounts")


@dataclass(frozen=True)
class Intent:
    """What one client wants once, and how impatient it is."""

    number: int
    kind: str
    amount: int
    twins: int
    """Requests sent at the same time, under the one key."""
    patience: float
    """Seconds that a client waits for an answer before it hangs up and tries again."""
    changes_its_mind: bool
    """At the end it sends another body under the same key."""
    declined: bool

    @property
    def key(self) -> str:
        return f"storm-{self.number}"

    @property
    def effect(self) -> str:
        """Return the kind of effect at the gateway, or ""."""
        return {"payment": "charge", "refund": "refund", "payout": "payout"}.get(self.kind, "")


# Kind and weight.
_INTENTS = {"payment": 4, "refund": 3, "payout": 2, "receipt": 1, "transfer": 2}


@dataclass(frozen=True)
class Blow:
    """Something that breaks: when, what, and with which particulars."""

    at: float
    name: str
    more: Mapping[str, Any]


def _fault(chance: random.Random) -> dict[str, Any]:
    return {
        "path": chance.choice(GATEWAY_PATHS),
        "kind": chance.choice(sorted(KINDS)),
        "times": chance.randint(1, 4),
        "seconds": round(chance.uniform(0.2, 2.0), 2),
    }


# Name, weight, and what its particulars are drawn by. What each does: `storm.py`.
BLOWS: dict[str, tuple[int, Callable[[random.Random], dict[str, Any]]]] = {
    "gateway_fault": (8, _fault),
    "kill_web": (3, lambda chance: {}),
    "kill_worker": (3, lambda chance: {}),
    "kill_beat": (1, lambda chance: {}),
    "kill_simulator": (2, lambda chance: {}),
    "crash_database": (1, lambda chance: {}),
    "flush_store": (2, lambda chance: {}),
    "restart_store": (1, lambda chance: {}),
    "freeze_web": (2, lambda chance: {"seconds": round(chance.uniform(1, 12), 1)}),
    "freeze_worker": (2, lambda chance: {"seconds": round(chance.uniform(1, 12), 1)}),
    "shift_clocks": (1, lambda chance: {"seconds": chance.choice([-7200, -60, 90, 7200])}),
}


@dataclass(frozen=True)
class Script:
    """All of it."""

    seed: int
    intents: list[Intent]
    blows: list[Blow]


def script(*, seed: int, intents: int, seconds: float) -> Script:
    """Draw the script: the same for the same seed and size."""
    chance = random.Random(seed)
    wanted = [_intent(number, chance) for number in range(intents)]
    blows: list[Blow] = []
    at = 1.0
    while at < seconds:
        name = chance.choices(list(BLOWS), [weight for weight, _ in BLOWS.values()])[0]
        blows.append(Blow(round(at, 1), name, BLOWS[name][1](chance)))
        at += chance.uniform(0.3, 3.0)
    return Script(seed, wanted, blows)


def _intent(number: int, chance: random.Random) -> Intent:
    return Intent(
        number=number,
        kind=chance.choices(list(_INTENTS), list(_INTENTS.values()))[0],
        amount=chance.randint(1, 500),
        twins=chance.choices([1, 2, 5], [8, 2, 1])[0],
        patience=round(chance.choice([0.3, 1.5, 5.0]), 1),
        changes_its_mind=chance.random() < 0.15,
        declined=chance.random() < 0.1,
    )
