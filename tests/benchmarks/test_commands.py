"""Every benchmark still runs, at its smallest, and gives its table. What it measures is nobody's to assert."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALLEST = {
    "console": ("--rows", "40000", "--rounds", "1"),
    "deferred": ("--jobs", "20", "--workers", "1", "--rounds", "1"),
    "fingerprint": ("--seconds", "0.01"),
    "herd": (),
    "ledger": ("--rows", "3000", "--rounds", "1"),
    "protection": ("--quick", "--rounds", "1", "--batch", "2"),
    "resilience": ("--rounds", "2", "--batch", "5"),
    "scaling": ("--processes", "1", "--rounds", "1"),
    "startup": ("--rounds", "1"),
}

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


def test_every_benchmark_is_run_here() -> None:
    commands = {path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert commands == SMALLEST.keys()


@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_gives_its_table(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "project.embedded", "-m", f"benchmarks.{name}", *SMALLEST[name]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = [line for line in ran.stdout.splitlines() if line.startswith("|")]
    assert len(rows) >= 3, ran.stdout
    assert not any(number in line for line in rows for number in ("nan", "inf"))
