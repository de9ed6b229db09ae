"""Measure scaling out: several web processes, PgBouncer before the database, a streaming replica behind it.

    python -m benchmarks.scaling [--processes 1 2 4] [--rounds 6] [--write]

Each process serves four requests at once without a socket. Set-ups take turns in random order. At the end all processes
send the same keys at the same time, and what was done is counted.
"""

import argparse
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg

from benchmarks.host.variants import VARIANTS
from benchmarks.rig import figures, servers
from benchmarks.rig.replica import Replica
from benchmarks.rig.subject import Subject
from project.embedded import Postgres, Store
from tests.hosts.site.pgbouncer import PgBouncer, installed

RESULT = Path(__file__).with_name("results") / "scaling.md"
OURS = {
    "direct": VARIANTS["idempotent"],
    # Not every PgBouncer keeps prepared statements.
    "PgBouncer": VARIANTS["idempotent, unprepared"],
}
CLIENTS, BATCH, TWINS = 4, 60, 40


@dataclass
class Cell:
    """So many processes on one way to the database, and what was measured."""

    way: str
    processes: int
    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)


@dataclass
class Found:
    """What else was seen."""

    twins: dict[str, str] = field(default_factory=dict)
    lags: list[float] = field(default_factory=list)
    """Seconds until the replica had replayed what a batch had committed."""


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    ways = ["direct", *(["PgBouncer"] if installed() else []), "direct, with a replica"]
    cells = [Cell(way, many) for way in ways for many in options.processes]
    found = Found()
    with servers.postgres() as postgres, servers.store() as store, servers.home() as home:
        url = servers.new_database(postgres.url, "scaled")
        with ExitStack() as stack:
            addresses = {"direct": url}
            if installed():
                addresses["PgBouncer"] = _pooled(url, home, stack)
            most = max(options.processes)
            subjects = {
                way: [stack.enter_context(_subject(way, at, store)) for _ in range(most)]
                for way, at in addresses.items()
            }
            subjects["direct"][0].do("prepare")
            alone = [cell for cell in cells if cell.way in addresses]
            for cell in figures.interleaved(alone, options.rounds):
                _time(cell, subjects[cell.way][: cell.processes])
            for way, group in subjects.items():
                found.twins[way] = _twins(group, url)
            replica = Replica(home=home / "replica", of=postgres)
            stack.callback(replica.remove)
            replica.start()
            stack.callback(replica.stop)
            beside = [cell for cell in cells if cell.way not in addresses]
            for cell in figures.interleaved(beside, options.rounds):
                _time(cell, subjects["direct"][: cell.processes])
                found.lags.append(_lag(postgres, replica))
    text = page(cells, found)
    print(text)
    if options.write:
        RESULT.write_text(text)


def _subject(way: str, url: str, store: Store) -> Subject:
    return Subject(OURS[way], database_url=url, redis_url=store.url)


def _pooled(url: str, home: Path, stack: ExitStack) -> str:
    at = urlsplit(url)
    database = {
        "HOST": at.hostname,
        "PORT": at.port,
        "USER": at.username,
        "PASSWORD": unquote(at.password or ""),
        "NAME": at.path[1:],
    }
    through = stack.enter_context(PgBouncer(home=home, database=database))
    return servers.through(url, through["PORT"])


def _time(cell: Cell, subjects: Sequence[Subject]) -> None:
    for subject in subjects:
        subject.do("send", case="fresh", count=CLIENTS, clients=CLIENTS)
    began = time.perf_counter()
    for subject in subjects:
        subject.ask("send", case="fresh", count=BATCH, clients=CLIENTS)
    reports = [subject.report() for subject in subjects]
    cell.rates.append(BATCH * len(subjects) / (time.perf_counter() - began))
    for report in reports:
        assert list(report["answers"]) == ["201"], report["answers"]
        cell.latencies += report["latencies"]


def _twins(subjects: Sequence[Subject], url: str) -> str:
    """Have all send the same new keys at once, then once more; return what was answered and done."""
    keys = [str(uuid.uuid4()) for _ in range(TWINS)]
    with psycopg.connect(url, autocommit=True) as connection:
        before = _number(connection, "SELECT count(*) FROM effect")
        told = []
        for _ in range(2):
            answers: Counter[str] = Counter()
            for subject in subjects:
                subject.ask("send", case="replay", count=TWINS, clients=CLIENTS, keys=keys)
            for subject in subjects:
                answers.update(subject.report()["answers"])
            told.append(
                ", ".join(f"{count} × {status}" for status, count in sorted(answers.items()))
            )
        done = _number(connection, "SELECT count(*) FROM effect") - before
    return f"{TWINS} keys: {told[0]}; again: {told[1]}; effects: {done}"


def _lag(postgres: Postgres, replica: Replica) -> float:
    with (
        psycopg.connect(postgres.url, autocommit=True) as ours,
        psycopg.connect(replica.url, autocommit=True) as theirs,
    ):
        query = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"
        written, began = _number(ours, query), time.perf_counter()
        query = "SELECT (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint"
        while _number(theirs, query) < written:
            time.sleep(0.001)
        return time.perf_counter() - began


def _number(connection: psycopg.Connection, query: str) -> int:
    found = connection.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def page(cells: Sequence[Cell], found: Found) -> str:
    """Return the page that is kept in the repository."""
    head = ("", "web processes", "requests/s", "p50 ms", "p99 ms")
    rows = [
        [
            cell.way,
            cell.processes,
            figures.spread(cell.rates),
            f"{figures.percentile(cell.latencies, 0.5) * 1e3:.1f}",
            f"{figures.percentile(cell.latencies, 0.99) * 1e3:.1f}",
        ]
        for cell in cells
    ]
    twins = "".join(f"- {way}: {told}\n" for way, told in found.twins.items())
    return (
        "# Scaling out\n\n"
        "`python -m benchmarks.scaling --write` made this page: web processes that serve four requests at once each,"
        " and PostgreSQL, all on one machine.\n"
        "PgBouncer pools transactions over 3 connections. In brackets: quartiles.\n"
        "\n"
        f"{figures.table(head, rows)}\n"
        "The same keys sent by all processes at the same time, and then again:\n\n"
        f"{twins}\n"
        "The replica had replayed what was committed after"
        f" {statistics.median(found.lags) * 1e3:.0f} ms (most: {max(found.lags) * 1e3:.0f} ms).\n"
    )


if __name__ == "__main__":
    main()
