"""From fault to settlement: how long a key was unknown that a fault had made so, by kind of fault."""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from idempotency.types import State
from tests.faults.machine.facts import Facts
from tests.faults.machine.invariants import SETTLED


@dataclass(frozen=True)
class Strike:
    """Something broke."""

    at: float
    kind: str


@dataclass(frozen=True)
class Healed:
    """One key, struck and settled."""

    name: str
    kind: str
    seconds: float


def healed(facts: Facts, strikes: Collection[Strike]) -> Iterator[Healed]:
    """Generate each time that the key's outcome was lost and then found, measured from the strike.

    An outcome is lost within one run. That run's first strike counts, and its begin where no strike is known: what is
    told is rather too long than too short. What a person has to settle is not told here.
    """
    moves = [move for move in facts.moves if move.table == "idempotency_key"]
    for number, move in enumerate(moves):
        if move.new != State.UNKNOWN or move.old != State.IN_PROGRESS:
            continue
        settled = next((later.at for later in moves[number:] if later.new in SETTLED), None)
        if settled is None:
            continue
        begun = moves[number - 1].at
        within = [strike for strike in strikes if begun <= strike.at <= move.at]
        first = min(within, key=lambda strike: strike.at, default=Strike(begun, "time ran out"))
        yield Healed(facts.name, first.kind, settled - first.at)


def summary(found: Iterable[Healed]) -> list[str]:
    """Say number, median, 99th percentile and worst, of all and by kind."""
    kinds: dict[str, list[Healed]] = defaultdict(list)
    for each in found:
        for kind in ("all", each.kind):
            kinds[kind].append(each)
    return [_line(kind, those) for kind, those in sorted(kinds.items())]


def _line(kind: str, those: list[Healed]) -> str:
    seconds = sorted(each.seconds for each in those)
    p99 = seconds[math.ceil(len(seconds) * 0.99) - 1]
    worst = max(those, key=lambda each: each.seconds)
    return (
        f"  {kind:<28} {len(seconds):>6} keys, median {statistics.median(seconds):>5.1f} s, "
        f"p99 {p99:>5.1f} s, worst {worst.seconds:>5.1f} s ({worst.name})"
    )
