"""Simulate the thundering herd: many clients, a dependency that is down, and what they send it.

    python -m benchmarks.herd [--write]

A thousand clients call a dependency now and then. When it goes down each has a call under way, so
all fail in the same instant; thirty seconds later it is back. Four times: with and without jitter,
with and without a retry budget, by the room's own `RetryPolicy` and `RetryBudget`. No time passes:
events are taken from a queue in order, so the same seed gives the same numbers on any machine.

`--write` renews `benchmarks/results/herd.md` and `herd.svg`.
"""

import argparse
import heapq
import random
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from idempotency.clock import Clock
from idempotency.resilience import RetryBudget, RetryPolicy

RESULTS = Path(__file__).with_name("results")

CLIENTS = 1_000
PROCESSES = 20
"""Each has one retry budget for its fifty clients."""
THINK_SECONDS = 5.0
"""Between a client's calls, on average: 200 calls a second in all."""
DOWN_AT, UP_AT, END = 10.0, 40.0, 70.0
CAPACITY = 50
"""Requests that the dependency takes per tenth of a second; the rest it refuses."""
BUCKET = 0.1
POLICY = RetryPolicy(attempts=10, base=0.5, cap=10.0, attempt_timeout=1.0, series=90.0)


@dataclass
class Run:
    """One simulated minute."""

    jitter: bool
    budget: bool
    offered: list[int] = field(default_factory=lambda: [0] * round(END / BUCKET))
    """Requests sent, per tenth of a second."""
    refused: list[int] = field(default_factory=lambda: [0] * round(END / BUCKET))
    calls: int = 0
    retries: int = 0

    @property
    def name(self) -> str:
        jitter = "full jitter" if self.jitter else "no jitter"
        return f"{jitter}, {'retry budget' if self.budget else 'no budget'}"

    @property
    def peak(self) -> float:
        """Most requests a second, over any tenth of one, once the first shock has passed."""
        return max(self.offered[bucket(DOWN_AT) + 1 :]) / BUCKET

    @property
    def wasted(self) -> int:
        """Requests sent to a dependency that was down."""
        return sum(self.offered[bucket(DOWN_AT) : bucket(UP_AT)])

    @property
    def turned_away(self) -> int:
        """Requests refused after it was back: too many at once."""
        return sum(self.refused[bucket(UP_AT) :])


def bucket(at: float) -> int:
    return min(round(END / BUCKET) - 1, int(at / BUCKET))


def simulate(*, jitter: bool, budget: bool, seed: int = 1) -> Run:
    """Return what the clients sent."""
    run, dice = Run(jitter, budget), random.Random(seed)
    clock = Clock(uniform=dice.uniform if jitter else lambda low, high: high)
    budgets = [RetryBudget(ratio=0.2, burst=10) for _ in range(PROCESSES)]
    queue: list[tuple[float, int, Generator[float, bool, None]]] = []
    tie = count()
    for number in range(CLIENTS):
        own = budgets[number % PROCESSES] if budget else None
        client = behave(run, dice, clock, own)
        heapq.heappush(queue, (next(client), next(tie), client))
    while queue and queue[0][0] < END:
        at, _, client = heapq.heappop(queue)
        heapq.heappush(queue, (client.send(answer(run, at)), next(tie), client))
    return run


def behave(
    run: Run, dice: random.Random, clock: Clock, budget: RetryBudget | None
) -> Generator[float, bool, None]:
    """Be one client: yield when the next request leaves, and be told whether it was served."""
    at = 0.0
    while True:
        at, before = at + dice.expovariate(1 / THINK_SECONDS), at
        if before < DOWN_AT <= at:
            # The call that is under way when the dependency goes down.
            at = DOWN_AT
        run.calls += 1
        if budget is not None:
            budget.earn()
        served = yield at
        for retries in range(POLICY.attempts - 1):
            if served or (budget is not None and not budget.spend()):
                break
            at += POLICY.pause(retries, clock=clock)
            run.retries += 1
            served = yield at


def answer(run: Run, at: float) -> bool:
    """Take one request; return whether it is served."""
    slot = bucket(at)
    run.offered[slot] += 1
    served = not DOWN_AT <= at < UP_AT and run.offered[slot] <= CAPACITY
    run.refused[slot] += not served
    return served


# -- the results --------------------------------------------------------------------------------------


def table(runs: list[Run]) -> str:
    """Return the numbers as Markdown."""
    head = (
        "| | requests a second, worst tenth after the shock | sent while it was down |"
        " refused after it was back | retries per call |\n|---|---|---|---|---|\n"
    )
    lines = (
        f"| {run.name} | {run.peak:.0f} | {run.wasted} | {run.turned_away} |"
        f" {run.retries / run.calls:.2f} |\n"
        for run in runs
    )
    return head + "".join(lines)


def page(runs: list[Run]) -> str:
    """Return the page that is kept in the repository."""
    return (
        "# The thundering herd, simulated\n\n"
        f"`python -m benchmarks.herd --write` made this page.\n"
        f"{CLIENTS} clients make a call every {THINK_SECONDS:.0f} s on average.\n"
        f"The dependency takes {CAPACITY / BUCKET:.0f} requests a second;"
        f" it is down from second {DOWN_AT:.0f} to {UP_AT:.0f}, and all have a call under way when"
        " it goes.\n"
        f"Up to {POLICY.attempts} attempts, base {POLICY.base} s, cap {POLICY.cap:.0f} s;"
        f" the budget allows one retry per five calls, in each of {PROCESSES} processes.\n\n"
        f"{table(runs)}\n"
        "![Requests per second over time](herd.svg)\n"
    )


WIDTH, HEIGHT, LEFT, TOP = 760, 130, 60, 26


def plot(runs: list[Run]) -> str:
    """Return offered load over time as SVG, a panel per run, all on one scale."""
    most = max(max(run.offered) for run in runs)
    panels = "".join(panel(run, TOP + n * (HEIGHT + 44), most) for n, run in enumerate(runs))
    height = TOP + len(runs) * (HEIGHT + 44)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + LEFT + 20}" height="{height}"'
        f' font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{panels}</svg>\n'
    )


def panel(run: Run, top: int, most: int) -> str:
    def x(seconds: float) -> float:
        return round(LEFT + seconds / END * WIDTH, 1)

    def y(offered: float) -> float:
        return round(top + HEIGHT - offered / most * HEIGHT, 1)

    bottom = top + HEIGHT
    bars = "".join(
        f"M{x(n * BUCKET)} {bottom}V{y(offered)}"
        for n, offered in enumerate(run.offered)
        if offered
    )
    seconds = "".join(
        f'<text x="{x(at)}" y="{bottom + 14}" text-anchor="middle">{at} s</text>\n'
        for at in range(0, round(END) + 1, 10)
    )
    return (
        f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{run.name}</text>\n'
        f'<rect x="{x(DOWN_AT)}" y="{top}" width="{x(UP_AT) - x(DOWN_AT)}" height="{HEIGHT}"'
        ' fill="#fde8e8"/>\n'
        f'<path d="{bars}" stroke="#1f5fa8" stroke-width="1"/>\n'
        f'<path d="M{LEFT} {y(CAPACITY)}H{LEFT + WIDTH}" stroke="#c33" stroke-dasharray="4 3"/>\n'
        f'<path d="M{LEFT} {top}V{bottom}H{LEFT + WIDTH}" stroke="#333" fill="none"/>\n'
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most / BUCKET:.0f}/s</text>\n'
        f'<text x="{LEFT - 6}" y="{y(CAPACITY)}" text-anchor="end">{CAPACITY / BUCKET:.0f}/s'
        f"</text>\n{seconds}"
    )


def results() -> dict[str, str]:
    """Return the files of the result by name."""
    runs = [simulate(jitter=j, budget=b) for j in (False, True) for b in (False, True)]
    return {"herd.md": page(runs), "herd.svg": plot(runs)}


def main() -> None:
    """Print the page; write it and the plot where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the files in results/")
    write = parser.parse_args().write
    files = results()
    print(files["herd.md"])
    if write:
        for name, text in files.items():
            (RESULTS / name).write_text(text)


if __name__ == "__main__":
    main()
