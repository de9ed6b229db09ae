"""The storm's script, drawn from its seed: what is asked, how clients behave, what breaks and when.

To add a kind of intent, add a line to `_INTENTS`; to add something that breaks, one to `BLOWS` in `blows.py`.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults.machine.blows import BLOWS


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
        name = chance.choices(list(BLOWS), [kind.weight for kind in BLOWS.values()])[0]
        blows.append(Blow(round(at, 1), name, BLOWS[name].draw(chance)))
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
