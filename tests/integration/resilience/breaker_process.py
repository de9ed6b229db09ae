"""A process that asks one shared breaker with many threads at once, and prints what it was told.

`python -m tests.integration.resilience.breaker_process URL NAME THREADS SKEW` waits for a line on
standard input, asks, prints one JSON line, and stays: with every permit unreported, as a process
that hangs or is killed leaves it.
"""

import json
import sys
import threading

from idempotency.clock import SYSTEM, Clock
from idempotency.resilience import BreakerSettings, CircuitBreaker, SharedStore
from idempotency.telemetry import BreakerChanged, subscribe

SETTINGS = BreakerSettings(
    window=5, min_calls=4, ratio=0.5, open_seconds=0.5, probes=2, successes=2, lease=4.0
)


def main(url: str, name: str, threads: int, skew: float) -> None:
    changes: list[str] = []
    subscribe(BreakerChanged, lambda event: changes.append(f"{event.before}>{event.after}"))
    clock = Clock(now=lambda: SYSTEM.now() + skew, wall=lambda: SYSTEM.wall() + skew)
    store = SharedStore.connect(url, timeout=2.0)
    breaker = CircuitBreaker(name=name, store=store, settings=SETTINGS, clock=clock)
    allowed: list[bool] = []
    together = threading.Barrier(threads)

    def ask() -> None:
        together.wait()
        allowed.append(breaker.acquire().allowed)

    print("ready", flush=True)
    sys.stdin.readline()
    asking = [threading.Thread(target=ask) for _ in range(threads)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    told = {"allowed": sum(allowed), "asked": len(allowed), "changes": changes}
    print(json.dumps(told), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
