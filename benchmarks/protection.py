"""Measure what protection costs: one endpoint bare, by hand, under `@idempotent`, and under other libraries.

    python -m benchmarks.protection [--quick] [--peers] [--rounds 20] [--batch 40] [--write]

Each guise is a process of its own that serves the request through the whole of Django, without a socket, and measures
its own CPU; PostgreSQL flushes every commit. All guises and cases take turns in random order within each round; a ratio
is the median of the rounds' ratios, with what lies between the quartiles. Statements, commits and round trips are
counted on the wire by a second process of the same kind, before anything is timed.

`--quick` compares bare, floor and ours in less than a minute; `--peers` compares them with every other library that
installs; `--write` renews `benchmarks/results/protection.md`.
"""

import argparse
import contextlib
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from benchmarks.host.variants import OWN, PEERS, Variant
from benchmarks.rig import figures, protection_page, servers
from benchmarks.rig.environments import CannotInstall
from benchmarks.rig.subject import Subject, SubjectFailed
from benchmarks.rig.wire import Counts, Meter
from project.embedded import Postgres, Store

RESULT = Path(__file__).with_name("results") / "protection.md"
COUNTED = 20
"""Requests over which statements are counted."""
PREPARED_AT_ONCE = 7


@dataclass
class Cell:
    """One variant in one case with so many clients, and what was measured of it."""

    variant: Variant
    case: str
    clients: int
    latencies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Per request, one entry per round; so are the next two."""
    cpu: list[float] = field(default_factory=list)
    wal: list[float] = field(default_factory=list)
    server: float = 0
    """CPU seconds of PostgreSQL, for all requests together: its clock ticks too coarsely for a round."""
    answers: Counter[str] = field(default_factory=Counter)


@dataclass
class Measured:
    """Everything that a page is made of."""

    rounds: int
    batch: int
    cells: list[Cell] = field(default_factory=list)
    counts: dict[tuple[str, str], Counts] = field(default_factory=dict)
    """By variant and case: of `COUNTED` requests."""
    missing: dict[str, str] = field(default_factory=dict)
    """Variants that could not be measured, and why."""


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours and the floor only, one client")
    parser.add_argument("--peers", action="store_true", help="other libraries as well")
    parser.add_argument("--only", nargs="*", default=[], help="names of variants")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--batch", type=int, default=24, help="requests per cell and round")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    if options.quick:
        options.clients, options.peers, options.rounds = [1], False, min(options.rounds, 15)
    variants = [*OWN, *(PEERS if options.peers else ())]
    if options.only:
        variants = [variant for variant in variants if variant.name in options.only]
    with servers.postgres() as postgres, servers.store() as store:
        measured = measure(
            variants, postgres, store, options.rounds, options.batch, options.clients
        )
    page = protection_page.page(measured)
    print(page)
    if options.write:
        RESULT.write_text(page)
        told = json.dumps(protection_page.summary(measured), indent=1)
        RESULT.with_suffix(".json").write_text(f"{told}\n")


def measure(
    variants: Sequence[Variant],
    postgres: Postgres,
    store: Store,
    rounds: int,
    batch: int,
    clients: Sequence[int],
) -> Measured:
    """Count, then time, every case of every variant that can be had."""
    measured = Measured(rounds, batch)
    with contextlib.ExitStack() as stack:
        subjects = {}
        # Loading and migrating take most of the time, and nothing is timed yet.
        with ThreadPoolExecutor(PREPARED_AT_ONCE) as pool:
            ready = list(pool.map(lambda one: _prepared(one, postgres, store), variants))
        for variant, found in zip(variants, ready, strict=True):
            if isinstance(found, str):
                measured.missing[variant.name] = found
                continue
            subject, counts = found
            subjects[variant.name] = stack.enter_context(subject)
            for case in cases(variant):
                measured.counts[variant.name, case] = counts[case]
            for many, case in product(clients, cases(variant)):
                measured.cells.append(Cell(variant, case, many))
        for cell in measured.cells:
            # So often that each client's connection has prepared what it sends.
            subjects[cell.variant.name].do(
                "send", case=cell.case, count=10 * cell.clients, clients=cell.clients
            )
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            for cell in figures.interleaved(measured.cells, rounds):
                server = servers.cpu_seconds(postgres)
                _time(cell, subjects[cell.variant.name], batch, connection)
                cell.server += servers.cpu_seconds(postgres) - server
    return measured


def _prepared(
    variant: Variant, postgres: Postgres, store: Store
) -> tuple[Subject, dict[str, Counts]] | str:
    """Return a process that is ready, and what it asks for; or why there is none."""
    try:
        url = servers.new_database(postgres.url, variant.name)
        counts = counted(variant, url, store.url)
        subject = Subject(variant, database_url=url, redis_url=store.url)
        subject.do("seed")
    except (CannotInstall, SubjectFailed) as error:
        return str(error)
    return subject, counts


def cases(variant: Variant) -> Sequence[str]:
    """Return what can be asked of it: without a key every request is a fresh one."""
    return ("fresh",) if variant.name.startswith("bare") else ("fresh", "replay", "conflict")


def counted(variant: Variant, url: str, redis_url: str) -> dict[str, Counts]:
    """Return, by case, what a process of this variant asks for `COUNTED` requests, once it is warm.

    `url` is that of an empty database without TLS.

    Raises:
        SubjectFailed: the process ended.
    """
    found = {}
    address = urlsplit(url)
    with Meter(str(address.hostname), address.port or 5432) as meter:
        through = servers.through(url, meter.port)
        with Subject(variant, database_url=through, redis_url=redis_url) as subject:
            subject.do("prepare")
            subject.do("seed")
            for case in cases(variant):
                subject.do("send", case=case, count=10)
                before = meter.counts
                subject.do("send", case=case, count=COUNTED)
                found[case] = meter.counts - before
    return found


def _time(cell: Cell, subject: Subject, count: int, connection: psycopg.Connection) -> None:
    before = _wal(connection)
    report = subject.do("send", case=cell.case, count=count, clients=cell.clients)
    cell.wal.append((_wal(connection) - before) / count)
    cell.seconds.append(report["seconds"] / count)
    cell.cpu.append(report["cpu"] / count)
    cell.latencies += report["latencies"]
    cell.answers.update(report["answers"])


def _wal(connection: psycopg.Connection) -> int:
    found = connection.execute(
        "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
    ).fetchone()
    assert found is not None
    return int(found[0])


if __name__ == "__main__":
    main()
