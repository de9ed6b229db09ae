"""What the pages say of performance, from the results of the benchmarks."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"

_DAY = 86_400
_DAYS = 30
_PEAK = 3
_KEYS = (100_000, 1_000_000, 10_000_000)


def measured(name: str) -> str:
    """Return a result, its headings one level lower and its title left out."""
    _, _, text = (RESULTS / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    return text.replace("\n## ", "\n### ")


def carried() -> str:
    """Return what so many keys a day are on disk, in the WAL and in PostgreSQL's CPU."""
    local, call = _per_request("idempotent"), _per_request("idempotent + call")
    sizes = json.loads((RESULTS / "ledger.json").read_text(encoding="utf-8"))
    largest = sizes[max(sizes, key=int)]
    row = largest["filled"] / largest["rows"]
    head = "| keys a day | a second, at the peak | disk | WAL a day, local | with a call | processors, local"
    lines = [f"{head} | with a call |", "|---|---|---|---|---|---|---|"]
    for keys in _KEYS:
        peak = keys / _DAY * _PEAK
        lines.append(
            f"| {keys:,} | {peak:.0f} | {_size(keys * _DAYS * row)} "
            f"| {_size(keys * local['wal'])} | {_size(keys * call['wal'])} "
            f"| {peak * local['server']:.2f} | {peak * call['server']:.2f} |".replace(",", " ")
        )
    note = (
        f"\n\nOne key is {row:.0f} bytes with its indexes; a request with a call also has a step and a sender,"
        " which are not in the disk's column."
    )
    return "\n".join(lines) + note


def _per_request(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((RESULTS / "protection.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = told[f"{name}, fresh, 1"]
    return found


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
