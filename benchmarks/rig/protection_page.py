"""The page of `benchmarks.protection`."""

import os
import platform
from typing import TYPE_CHECKING

import django

from benchmarks.rig import figures

if TYPE_CHECKING:
    from benchmarks.protection import Cell, Measured

_HEAD = (
    "", "clients", "answer", "requests/s", "p50 ms", "p99 ms", "time ÷ bare", "CPU ms", "CPU ÷ bare",
    "added CPU ÷ floor's", "statements", "commits", "round trips", "WAL bytes", "PostgreSQL's CPU ms",
)  # fmt: skip


def page(measured: "Measured") -> str:
    """Return the page that is kept in the repository."""
    return (
        "# What protection costs\n\n"
        "`python -m benchmarks.protection --peers --write` made this page.\n"
        f"{measured.rounds} rounds of {measured.batch} requests per line, in a new random order each;"
        f" Python {platform.python_version()}, Django {django.__version__}, {os.cpu_count()} processors,"
        " PostgreSQL flushes every commit.\n"
        "Ratios are medians of the rounds' ratios, in brackets their quartiles; *added* is what comes on top of"
        " the bare endpoint.\n"
        "Statements and the like are per request, those of authentication and of the work itself included.\n"
        "Django's connections prepare their statements, except where a line says *unprepared*.\n\n"
        f"{figures.table(_HEAD, [_line(cell, measured) for cell in measured.cells])}"
        f"{_missing(measured)}{_promises(measured)}"
    )


def _line(cell: "Cell", measured: "Measured") -> list[object]:
    kind = " + call" if "+ call" in cell.variant.name else ""
    bare = _other(measured, f"bare{kind}", cell.clients)
    floor = _other(measured, f"floor{kind}", cell.clients)
    counts = measured.counts[cell.variant.name, cell.case]
    name = cell.variant.name if cell is bare else f"{cell.variant.name}, {cell.case}"
    return [
        name,
        cell.clients,
        ", ".join(sorted(cell.answers)),
        f"{1 / figures.spread_of(cell.seconds)[1]:.0f}",
        f"{figures.percentile(cell.latencies, 0.5) * 1e3:.2f}",
        f"{figures.percentile(cell.latencies, 0.99) * 1e3:.2f}",
        figures.ratio(cell.seconds, bare.seconds) if bare else "–",
        f"{figures.spread_of(cell.cpu)[1] * 1e3:.2f}",
        figures.ratio(cell.cpu, bare.cpu) if bare else "–",
        _added(cell, bare, floor),
        *(_each(count) for count in (counts.statements, counts.commits, counts.round_trips)),
        f"{figures.spread_of(cell.wal)[1]:.0f}",
        f"{cell.server / len(cell.latencies) * 1e3:.2f}",
    ]


def summary(measured: "Measured") -> dict[str, dict[str, float]]:
    """Return, by variant, case and number of clients, what other pages reckon with; seconds and bytes per request."""
    return {
        f"{cell.variant.name}, {cell.case}, {cell.clients}": {
            "cpu": figures.spread_of(cell.cpu)[1],
            "wal": figures.spread_of(cell.wal)[1],
            "server": cell.server / len(cell.latencies),
        }
        for cell in measured.cells
    }


def _other(measured: "Measured", name: str, clients: int) -> "Cell | None":
    return next(
        (
            cell
            for cell in measured.cells
            if (cell.variant.name, cell.case, cell.clients) == (name, "fresh", clients)
        ),
        None,
    )


def _added(cell: "Cell", bare: "Cell | None", floor: "Cell | None") -> str:
    if bare is None or floor is None or cell is bare or cell.case != "fresh":
        return "–"
    return figures.told(*figures.ratio_of_excess(cell.cpu, floor.cpu, bare.cpu))


def _each(count: int) -> str:
    from benchmarks.protection import COUNTED

    return f"{count / COUNTED:g}"


def _missing(measured: "Measured") -> str:
    if not measured.missing:
        return ""
    lines = "".join(f"- {name}: {why}\n" for name, why in measured.missing.items())
    return f"\nNot measured:\n\n{lines}"


def _promises(measured: "Measured") -> str:
    told = {cell.variant.name: cell.variant for cell in measured.cells if cell.variant.note}
    if not told:
        return ""
    rows = [[one.name, *one.packages, one.keeps, one.note] for one in told.values()]
    return "\n## What each figure buys\n\n" + figures.table(
        ("", "version", "keeps keys in", "how its promise differs"), rows
    )
