"""Measure what a fingerprint costs, beside `json.loads` of the same body in the same run.

    python -m benchmarks.fingerprint [--seconds 2] [--write]

Both are run in turn, so that a noisy machine harms them alike; the median of each is shown.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import django
from django.conf import settings

from benchmarks.rig import figures

RESULT = Path(__file__).with_name("results") / "fingerprint.md"

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2, help="time per size")
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    settings.configure(SECRET_KEY="benchmark", DATA_UPLOAD_MAX_MEMORY_SIZE=None)
    django.setup()
    text = page(options.seconds)
    print(text)
    if options.write:
        RESULT.write_text(text)


def page(seconds: float) -> str:
    """Measure; return the page that is kept in the repository."""
    rows = []
    for size in SIZES:
        body = order_book(size)
        loads, prints = measured(partial(json.loads, body), fingerprinting(body), seconds)
        ours, theirs = statistics.median(prints), statistics.median(loads)
        ratio = figures.ratio(prints, loads)
        rows.append([len(body), f"{theirs * 1e3:.3f}", f"{ours * 1e3:.3f}", ratio, len(loads)])
    head = ("bytes", "`json.loads` ms", "fingerprint ms", "fingerprint ÷ json.loads", "runs")
    return (
        "# Fingerprints\n\n"
        "`python -m benchmarks.fingerprint --write` made this page: both in turn over the same JSON body;"
        " medians, in brackets quartiles.\n\n"
        f"{figures.table(head, rows)}"
    )


def order_book(size: int) -> bytes:
    """Return a JSON body of about this many bytes: short texts, integers, decimals, nesting."""
    dice = random.Random(1)
    orders: list[object] = []
    length = 0
    while length < size:
        order = {
            "order_id": f"o-{dice.randrange(10**9)}",
            "amount": dice.randrange(10**6),
            "currency": "EUR",
            "rate": round(dice.random(), 4),
            "note": "x" * dice.randrange(40),
            "lines": [{"sku": "é", "count": 2}, None, True],
        }
        orders.append(order)
        length += len(json.dumps(order))
    return json.dumps(orders).encode()


def fingerprinting(body: bytes) -> Callable[[], object]:
    """Return a call that digests the body as the request of a view."""
    from django.test import RequestFactory

    from idempotency.http.fingerprint import fingerprint

    request = RequestFactory().post("/api/payments/?a=1", body, "application/json")

    def run() -> object:
        return fingerprint(request=request, route="api/payments/", path_args={}).current

    return run


def measured(
    one: Callable[[], object], other: Callable[[], object], seconds: float
) -> tuple[list[float], list[float]]:
    """Return the times of both, run in turn until the time is up, three times at least."""
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while len(times[0]) < 3 or time.perf_counter() < end:
        for call, taken in zip((one, other), times, strict=True):
            began = time.perf_counter()
            call()
            taken.append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    main()
