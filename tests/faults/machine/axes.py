"""The matrix: what is asked × where its process is struck × how the gateway fails × who settles.

Generated. To add a fault of the gateway, add its kind to the simulator: one of each group that means something of its
own takes part by itself. To add a kind of work, a point, an action or a settler, add one line here.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from payments.simulator.faults.kinds import KINDS, FaultKind, Step
from tests.support.armed.plan import armed_key

# -- what is asked -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """One kind of movement of money."""

    name: str
    effect: str
    gateway_path: str
    calls: int = 1
    deferred: bool = False


WORKS = (
    Work("payment", "charge", "/v1/payment_intents"),
    Work("refund", "refund", "/v1/refunds", deferred=True),
    Work("payout", "payout", "/v1/payouts", calls=2, deferred=True),
)

# -- where its process is struck -----------------------------------------------------------------

AROUND_A_CALL = ("after_phase1", "after_call")
AROUND_THE_COMMIT = ("before_commit", "after_commit")
ON_THE_WIRE = ("half_sent",)
ACTIONS = ("kill", "stop", "raise")
# Between each two statements of a run; the longest has so many.
STATEMENTS = tuple(f"statement.{nth}" for nth in range(1, 20))


@dataclass(frozen=True)
class Strike:
    """What befalls a process, and where."""

    role: str
    point: str
    action: str

    def __str__(self) -> str:
        return f"{self.role}:{self.point}:{self.action}"


def strikes(work: Work) -> Iterator[Strike | None]:
    """Generate every strike that work can meet, and none."""
    yield None
    calls = [
        point if nth == 1 else f"{point}.{nth}"
        for point in AROUND_A_CALL
        for nth in range(1, work.calls + 1)
    ]
    web = (
        [*AROUND_THE_COMMIT, *ON_THE_WIRE]
        if work.deferred
        else [*calls, *AROUND_THE_COMMIT, *ON_THE_WIRE]
    )
    worker = [*calls, *AROUND_THE_COMMIT] if work.deferred else []
    for role, points in (("web", web), ("worker", worker)):
        for point, action in itertools.product(points, ACTIONS):
            yield Strike(role, point, action)
        for point in STATEMENTS if points else ():
            yield Strike(role, point, "kill")


# -- how the gateway fails -----------------------------------------------------------------------


def meaning(kind: FaultKind) -> tuple[object, ...]:
    """Return what a fault means for who calls; kinds of one meaning are one group."""
    ends = (Step.STALL, Step.DRIP, Step.RESET, Step.CLOSE)
    wire = next((step for step in ends if step in kind.wire), None)
    # A page of something in between means the same whatever it says.
    status = kind.instead.status if kind.instead and kind.by_gateway else 0
    return kind.applied, kind.kept, kind.by_gateway, wire, status // 100, status in (429, 503)


def _one_of_each() -> tuple[str, ...]:
    # A fault on an unread request cannot be aimed at one cell: the storm has those.
    aimed = [kind for kind in KINDS.values() if not kind.unread]
    return tuple({meaning(kind): kind.name for kind in reversed(aimed)}.values())


FAULTS = _one_of_each()
# For strikes that a fault of the gateway adds little to.
FEW_FAULTS = (None, "reset_after")

# -- who settles ---------------------------------------------------------------------------------

BY_ITSELF = ("client", "beat", "webhook", "worker")
BY_HAND = ("command", "staff")
SETTLERS = BY_ITSELF + BY_HAND

# -- the matrix ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One key of the matrix. Its amount is its own, so that a fault can be aimed at it."""

    number: int
    keyed: bool
    work: Work
    strike: Strike | None
    fault: str | None
    settler: str

    @property
    def amount(self) -> int:
        return 10_000 + self.number

    @property
    def key(self) -> str:
        """Return the idempotency key, which carries the strike."""
        name = f"cell-{self.number}"
        if self.strike is None:
            return name
        at = self.strike
        return armed_key(name, role=at.role, point=at.point, action=at.action)

    def __str__(self) -> str:
        gateway = "keyed" if self.keyed else "unkeyed"
        return f"{self.number} {gateway} {self.work.name} {self.strike} {self.fault} {self.settler}"


def matrix(*, keyed: bool) -> list[Cell]:
    """Generate every cell that means something, always in the same order."""
    cells: list[Cell] = []
    for work in WORKS:
        for strike, fault, settler in itertools.product(strikes(work), (None, *FAULTS), SETTLERS):
            if _means_something(work, strike, fault, settler):
                cells.append(Cell(len(cells), keyed, work, strike, fault, settler))
    return cells


def _means_something(work: Work, strike: Strike | None, fault: str | None, settler: str) -> bool:
    if strike is None and fault is None:
        return False
    if settler == "worker" and not work.deferred:
        return False
    if strike is not None and strike.point in STATEMENTS:
        return fault is None
    if strike is not None and (strike.action != "kill" or (work.deferred and strike.role == "web")):
        return fault in FEW_FAULTS
    return True


def sample(cells: list[Cell], *, seed: int, count: int) -> list[Cell]:
    """Choose so many cells, each adding strikes, faults and settlers that are not there yet."""
    chance = random.Random(seed)
    left = chance.sample(cells, len(cells))
    chosen: list[Cell] = []
    seen: set[object] = set()
    while left and len(chosen) < count:
        best = max(left[:200], key=lambda cell: len(_traits(cell) - seen))
        left.remove(best)
        chosen.append(best)
        seen |= _traits(best)
    return chosen


def _traits(cell: Cell) -> set[object]:
    work = cell.work.name
    return {
        (work, str(cell.strike)),
        (work, cell.fault),
        (work, cell.settler),
        (cell.fault, cell.settler),
        cell.fault,
        str(cell.strike),
    }
