"""Measure what admission, guard, bulkhead and circuit breaker add to one outside call that costs nothing.

    python -m project.embedded -m benchmarks.resilience [--rounds 200] [--batch 200] [--write]

All guises take turns in random order within each round; microseconds of CPU are this process's own. The shared breaker
asks a Valkey on this machine twice per call, once for a call that it refuses.
"""

import argparse
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.rig import figures
from idempotency.exceptions import CallFailed
from idempotency.resilience import (
    Admission,
    Attempt,
    Bulkhead,
    CircuitBreaker,
    Force,
    Guard,
    RetryBudget,
    SharedStore,
)

RESULT = Path(__file__).with_name("results") / "resilience.md"
MICRO = 1e6


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--batch", type=int, default=200, help="calls per guise and round")
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    calls = guises()
    elapsed: dict[str, list[float]] = {name: [] for name in calls}
    cpu: dict[str, list[float]] = {name: [] for name in calls}
    for name in figures.interleaved(list(calls), options.rounds):
        call, spent, began = calls[name], time.process_time(), time.perf_counter()
        for _ in range(options.batch):
            call()
        elapsed[name].append((time.perf_counter() - began) / options.batch * MICRO)
        cpu[name].append((time.process_time() - spent) / options.batch * MICRO)
    text = page(elapsed, cpu, options.rounds, options.batch)
    print(text)
    if options.write:
        RESULT.write_text(text)


def guises() -> dict[str, Callable[[], object]]:
    """Return the same call, protected in several ways."""
    store = SharedStore.connect(os.environ["REDIS_URL"])
    whole = Guard(
        name="all",
        effect=False,
        bulkhead=Bulkhead(name="all", limit=8),
        budget=RetryBudget(ratio=0.2, burst=10),
        breaker=CircuitBreaker(name="all", store=store),
    )
    admission = Admission(name="door", in_flight=8, least_time=0.1)
    return {
        "the call itself": lambda: send(None),
        "admission": lambda: admitted(admission),
        "guard": _through(Guard(name="guard", effect=False)),
        "guard, bulkhead": _through(
            Guard(name="bulkhead", effect=False, bulkhead=Bulkhead(name="one", limit=8))
        ),
        "guard, breaker in the process": _through(
            Guard(name="local", effect=False, breaker=CircuitBreaker(name="local"))
        ),
        "guard, breaker shared in Valkey": _through(
            Guard(name="shared", effect=False, breaker=CircuitBreaker(name="shared", store=store))
        ),
        "all of it": _through(whole),
        "guard, refused by an open breaker in Valkey": _refused(store),
    }


def send(attempt: Attempt | None) -> int:
    """Be the other side."""
    return 201


def admitted(admission: Admission) -> int:
    """Call behind a door."""
    with admission.enter():
        return send(None)


def _through(guard: Guard) -> Callable[[], object]:
    return lambda: guard.call(send)


def _refused(store: SharedStore) -> Callable[[], object]:
    breaker = CircuitBreaker(name="open", store=store)
    breaker.force(Force.OPEN, actor="benchmark", reason="what a refusal costs")
    guard = Guard(name="open", effect=False, breaker=breaker)

    def call() -> None:
        with contextlib.suppress(CallFailed):
            guard.call(send)

    return call


def page(
    elapsed: dict[str, list[float]], cpu: dict[str, list[float]], rounds: int, batch: int
) -> str:
    """Return the page that is kept in the repository."""
    rows = [[name, figures.spread(elapsed[name]), figures.spread(cpu[name])] for name in elapsed]
    return (
        "# What admission, guard and breaker cost\n\n"
        "`python -m project.embedded -m benchmarks.resilience --write` made this page:"
        f" medians over {rounds} rounds of {batch} calls, in brackets the quartiles.\n\n"
        f"{figures.table(('', 'µs per call', 'µs of CPU'), rows)}"
    )


if __name__ == "__main__":
    main()
