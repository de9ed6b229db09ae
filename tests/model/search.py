"""Every interleaving of a setting, breadth first: what must never be, and what must come at last."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.model.afterwards import Life
from tests.model.world import HOLDS_A_LOCK, Rules, Setting, World

RULES = Rules()

DOUBLE_EFFECT = "double effect"
NO_EFFECT = "success told without effect"
FOLLOW_UP_TWICE = "follow-up twice"
ROWS_TWICE = "rows of a phase twice"
TOO_MANY_ATTEMPTS = "attempts over the limit"
NEVER_ENDS = "the key never ends"
DENIED = "settled as not done though applied, and nobody is told"


@dataclass
class Found:
    """What a search came to: for each kind of fault the shortest trace to it."""

    states: int = 0
    complete: bool = False
    """Whether these are all the states there are; if not, they are those with the shortest ways to them."""
    traces: dict[str, list[str]] = field(default_factory=dict)


def search(
    setting: Setting, rules: Rules = RULES, *, until: str = "", most: float = math.inf
) -> Found:
    """Try everything.

    Args:
        until: a fault: then everything no longer than the shortest way to it.
        most: states to look at; whether every key comes to an end is said only of all of them.
    """
    graph = _Graph(setting.start())
    life = Life(setting, rules)
    found = Found()
    number = 0
    while number < min(len(graph.worlds), most) and until not in found.traces:
        world = graph.worlds[number]
        fault = fault_of(world, setting)
        if fault:
            found.traces.setdefault(fault, graph.trace(number))
        else:
            for step in life.steps(world):
                graph.add(number, step.label, step.after, helpful=step.helpful)
        number += 1
    found.states = number
    found.complete = number == len(graph.worlds)
    if found.complete:
        for kind, stuck in _never_reached(graph, setting):
            found.traces.setdefault(kind, graph.trace(stuck))
    return found


def fault_of(w: World, setting: Setting) -> str:
    """What must never be, in any state."""
    if len({step for step, _ in w.effects}) < len(w.effects):
        return DOUBLE_EFFECT
    if w.told == "success" and w.state == "completed" and len(w.effects) < setting.steps:
        return NO_EFFECT
    if w.follow_ups > 1:
        return FOLLOW_UP_TWICE
    if max(w.rows) > 1:
        return ROWS_TWICE
    return TOO_MANY_ATTEMPTS if w.attempts > setting.attempts else ""


# -- what must come at last: backwards over helpful steps only ---------------------------------------------------------


def _never_reached(graph: "_Graph", setting: Setting) -> Iterator[tuple[str, int]]:
    def ended(w: World) -> bool:
        settled = w.state in ("completed", "released") and not any(
            p.place in HOLDS_A_LOCK for p in w.processes
        )
        nothing = w.state == "none" and not w.processes
        return settled or nothing or w.state == "unknown"

    def admitted(w: World) -> bool:
        return w.news or (w.told == "success" and w.state == "completed")

    def denied(w: World) -> bool:
        said_no = w.state == "released" or (w.state == "completed" and w.told == "no")
        return said_no and bool(w.effects)

    fault = {n for n, world in enumerate(graph.worlds) if fault_of(world, setting)}
    for kind, goal, among in (
        (NEVER_ENDS, ended, lambda _: True),
        (DENIED, admitted, denied),
    ):
        goals = fault | {n for n, world in enumerate(graph.worlds) if goal(world)}
        stuck = graph.first_that_never_reaches(goals, among)
        if stuck is not None:
            yield kind, stuck


class _Graph:
    def __init__(self, start: World) -> None:
        self.worlds = [start]
        self._ids = {start: 0}
        self._came_from: list[tuple[int, str]] = [(-1, "")]
        self._helped_by: list[list[int]] = [[]]

    def add(self, number: int, label: str, after: World, *, helpful: bool) -> None:
        target = self._ids.setdefault(after, len(self.worlds))
        if target == len(self.worlds):
            self.worlds.append(after)
            self._came_from.append((number, label))
            self._helped_by.append([])
        if helpful:
            self._helped_by[target].append(number)

    def trace(self, number: int) -> list[str]:
        path: list[str] = []
        while number > 0:
            number, label = self._came_from[number]
            path.append(label)
        return path[::-1]

    def first_that_never_reaches(
        self, goals: set[int], among: Callable[[World], bool]
    ) -> int | None:
        reaches = bytearray(len(self.worlds))
        front = list(goals)
        for n in front:
            reaches[n] = 1
        while front:
            for n in self._helped_by[front.pop()]:
                if not reaches[n]:
                    reaches[n] = 1
                    front.append(n)
        return next(
            (n for n, world in enumerate(self.worlds) if not reaches[n] and among(world)), None
        )
