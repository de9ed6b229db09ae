"""Measure what the app adds to the start and the memory of a process that serves a small API.

    python -m benchmarks.startup [--rounds 15] [--write]

Each start is a process of its own that loads Django, the routes and the middleware, and ends; it connects nowhere.
Seconds are of CPU. Guises take turns in random order.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.rig import figures
from benchmarks.rig.subject import ROOT

RESULT = Path(__file__).with_name("results") / "startup.md"
LOAD = "from benchmarks.host.serve import Host; Host()"
GUISES = ("bare", "idempotent")


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in GUISES}
    megabytes: dict[str, list[float]] = {name: [] for name in GUISES}
    for name in figures.interleaved(GUISES, options.rounds):
        took, most = start(name)
        seconds[name].append(took)
        megabytes[name].append(most)
    text = page(seconds, megabytes, options.rounds)
    print(text)
    if options.write:
        RESULT.write_text(text)


def start(name: str) -> tuple[float, float]:
    """Start a process; return its CPU seconds and the most memory it held, in MB."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOAD],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "BENCHMARK_VARIANT": name,
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere",
            "REDIS_URL": "redis://127.0.0.1:1/0",
        },
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{name} did not start")
    # macOS counts bytes, Linux kilobytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6


def page(seconds: dict[str, list[float]], megabytes: dict[str, list[float]], rounds: int) -> str:
    """Return the page that is kept in the repository."""
    rows = [
        [name, figures.spread(seconds[name]), f"{statistics.median(megabytes[name]):.1f}"]
        for name in GUISES
    ]
    return (
        "# Start and memory\n\n"
        f"`python -m benchmarks.startup --write` made this page: medians of {rounds} starts of a process that"
        " serves a small API, in brackets the quartiles.\n\n"
        f"{figures.table(('', 'CPU seconds', 'MB'), rows)}"
    )


if __name__ == "__main__":
    main()
