"""Measure how the ledger bears its own size: claims and replays among millions of keys, while keys are forgotten.

    python -m benchmarks.ledger [--rows 1000000] [--rounds 30] [--write]

An empty ledger and a full one take turns on one server, so that a noisy machine harms them alike. The full one holds a
month of settled keys, the answers of its last three days among them; replays are of random ones. `--rows 50000000`
takes about 33 GB. The console's pages are measured by `benchmarks.console`.

`--write` adds the figures for this many rows to `benchmarks/results/ledger.json`, and renews `ledger.md`.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.host.variants import VARIANTS
from benchmarks.rig import figures, filling, ledger_page, servers
from benchmarks.rig.subject import Subject
from project.embedded import Postgres, Store

RESULTS = Path(__file__).with_name("results")
OURS = VARIANTS["idempotent"]
BATCH = 50


@dataclass
class Figures:
    """What was measured with so many rows; latencies in seconds."""

    rows: int
    filled: int = 0
    """Bytes of table and indexes, after filling."""
    claim: list[float] = field(default_factory=list)
    claim_empty: list[float] = field(default_factory=list)
    replay: list[float] = field(default_factory=list)
    replay_empty: list[float] = field(default_factory=list)
    calm: list[float] = field(default_factory=list)
    """Claims in the full ledger while nothing is purged, in turns with those while it is."""
    purging: list[float] = field(default_factory=list)
    purged: int = 0
    purge_seconds: float = 0
    day: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    with servers.postgres() as postgres, servers.store() as store:
        for found in measure(options.rows, options.rounds, postgres, store):
            print(keep(found, write=options.write), flush=True)


def keep(found: Figures, *, write: bool) -> str:
    """Return the page with what was measured so far, written to `results/` where asked to."""
    kept = RESULTS / "ledger.json"
    runs = json.loads(kept.read_text()) if kept.exists() else {}
    runs[str(found.rows)] = summary(found)
    page = ledger_page.page(runs)
    if write:
        kept.write_text(json.dumps(runs, indent=1) + "\n")
        (RESULTS / "ledger.md").write_text(page)
    return page


def measure(rows: int, rounds: int, postgres: Postgres, store: Store) -> Iterator[Figures]:
    """Fill, then measure; the figures come twice, before the day that takes longest and after it."""
    full = servers.new_database(postgres.url, "full")
    empty = servers.new_database(postgres.url, "empty")
    found = Figures(rows)
    with (
        Subject(OURS, database_url=full, redis_url=store.url) as ours,
        Subject(OURS, database_url=full, redis_url=store.url) as sweeper,
        Subject(OURS, database_url=empty, redis_url=store.url) as none,
        psycopg.connect(full, autocommit=True) as connection,
    ):
        for subject in (ours, none):
            subject.do("prepare")
            subject.do("seed")
        filling.fill(connection, rows)
        found.filled = filling.size(connection)
        _sizes(found, rounds, ours, none)
        _purge(found, rounds, ours, sweeper, connection)
        yield found
        found.day = filling.day(connection, rows, sweeper)
        yield found


def _sizes(found: Figures, rounds: int, ours: Subject, none: Subject) -> None:
    cells = [(one, case) for one in (ours, none) for case in ("fresh", "replay")]
    for subject, case in cells:
        subject.do("send", case=case, count=BATCH)
    kept = {
        (ours, "fresh"): found.claim,
        (none, "fresh"): found.claim_empty,
        (ours, "replay"): found.replay,
        (none, "replay"): found.replay_empty,
    }
    for subject, case in figures.interleaved(cells, rounds):
        # Of the last two days: an answer of the third may expire while this runs.
        keys = [filling.key(random.randrange(found.rows // 15)) for _ in range(BATCH)]
        given = keys if subject is ours and found.rows else None
        report = subject.do("send", case=case, count=BATCH, keys=given)
        assert list(report["answers"]) == ["201"], report["answers"]
        kept[subject, case] += report["latencies"]


def _purge(
    found: Figures, rounds: int, ours: Subject, sweeper: Subject, connection: psycopg.Connection
) -> None:
    """Claim while a purge runs, in turns with claims before one: what is to be purged was just written in both."""
    for busy in figures.interleaved([True, False], rounds):
        filling.expire(connection, 8_000)
        if busy:
            sweeper.ask("purge", seconds=20, **filling.TTL)
        report = ours.do("send", case="fresh", count=BATCH)
        (found.purging if busy else found.calm).extend(report["latencies"])
        if not busy:
            sweeper.ask("purge", seconds=20, **filling.TTL)
        done = sweeper.report()
        if busy:
            found.purged += done["keys"]
            found.purge_seconds += done["seconds"]


def summary(found: Figures) -> dict[str, Any]:
    """Return what the page is made of."""
    told: dict[str, Any] = {}
    for name, values in asdict(found).items():
        if isinstance(values, list):
            told[name] = {
                "p50": figures.percentile(values, 0.5),
                "p99": figures.percentile(values, 0.99),
                "p99_spread": figures.resampled(values, 0.99),
            }
        else:
            told[name] = values
    return told


if __name__ == "__main__":
    main()
