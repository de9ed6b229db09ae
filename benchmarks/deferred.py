"""Measure deferred work: jobs per second, their delay and their CPU, ours beside Celery's `delay()` and procrastinate.

    python -m benchmarks.deferred [--jobs 1000] [--workers 1 2 4] [--rounds 3] [--write]

Each job is sent in a transaction with an order, and inserts one row. *Throughput and CPU*: all jobs are sent before a
worker is there; both are those of the middle 80 %, so that starting is not in them. *Delay*: the same workers are idle
and a job is sent every 50 ms; from the order's insertion to the job's.
"""

import argparse
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from benchmarks.host.variants import QUEUES, Variant
from benchmarks.rig import cpu, figures, servers
from benchmarks.rig.environments import CannotInstall
from benchmarks.rig.subject import ROOT, Subject, python_of, surroundings
from project.embedded import Postgres

RESULT = Path(__file__).with_name("results") / "deferred.md"
IDLE_JOBS = 100
PATIENCE = 120.0
FIRST, LAST = 0.1, 0.9
"""Of the jobs that are done in a backlog: between these shares it is measured."""
IDLE_CPU = 0.02
"""Seconds of CPU in half a second: workers that use no more are idle."""

Worker = subprocess.Popen[bytes]


@dataclass
class Cell:
    """One queue with so many workers, and what was measured of it."""

    variant: Variant
    workers: int
    rates: list[float] = field(default_factory=list)
    """Jobs per second, one entry per round."""
    delays: list[float] = field(default_factory=list)
    sending: list[float] = field(default_factory=list)
    """Seconds of CPU per job in the sending process, one entry per round; so are the next, of the workers and of
    PostgreSQL."""
    working: list[float] = field(default_factory=list)
    serving: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="renew the page in results/")
    options = parser.parse_args()
    cells = [Cell(variant, many) for variant in QUEUES for many in options.workers]
    missing: dict[str, str] = {}
    with servers.postgres() as postgres:
        for number, cell in enumerate(figures.interleaved(cells, options.rounds)):
            url = servers.new_database(postgres.url, f"queue{number}")
            try:
                with servers.store() as store:
                    measure(cell, postgres, url, store.url, options.jobs)
            except CannotInstall as error:
                missing[cell.variant.name] = str(error)
    text = page(cells, missing, options.jobs)
    print(text)
    if options.write:
        RESULT.write_text(text)


def measure(cell: Cell, postgres: Postgres, url: str, redis_url: str, jobs: int) -> None:
    """Send a backlog, let the workers do it, then send to idle workers."""
    with (
        Subject(
            cell.variant, database_url=url, redis_url=redis_url, module="benchmarks.host.jobs.send"
        ) as sender,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        sender.do("prepare")
        cell.sending.append(sender.do("send", count=jobs)["cpu"] / jobs)
        with workers(cell, url, redis_url) as processes:
            used = [
                (
                    _wait(connection, int(share * jobs), processes),
                    cpu.seconds_of(*(each.pid for each in processes)),
                    servers.cpu_seconds(postgres),
                )
                for share in (FIRST, LAST)
            ]
            done, working, serving = (last - first for first, last in zip(*used, strict=True))
            cell.working.append(working / max(1, done))
            cell.serving.append(serving / max(1, done))
            _wait(connection, jobs, processes)
            cell.rates.append(_rate(connection, jobs))
            _wait_until_idle(processes)
            sender.do("send", count=IDLE_JOBS, pause=0.05)
            _wait(connection, jobs + IDLE_JOBS, processes)
            cell.delays += _delays(connection, jobs)


@contextmanager
def workers(cell: Cell, url: str, redis_url: str) -> Iterator[list[Worker]]:
    """Have that many workers."""
    python = python_of(cell.variant)
    commands: list[list[str | Path]] = [
        [python, "-m", "django", "procrastinate", "worker", "--concurrency", "1"]
    ] * cell.workers
    if not cell.variant.packages:
        many = ("--concurrency", str(cell.workers), "--loglevel", "ERROR", "--without-gossip")
        commands = [
            [python, "-m", "celery", "-A", "benchmarks.host.jobs.celeryapp", "worker", *many]
        ]
    environment = surroundings(cell.variant, url, redis_url) | {
        "DJANGO_SETTINGS_MODULE": "benchmarks.host.settings",
        "C_FORCE_ROOT": "1",
    }
    started: list[Worker] = []
    with ExitStack() as stack:
        for command in commands:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=subprocess.DEVNULL,
            )
            started.append(process)
            stack.callback(_end, process)
        yield started


def _end(process: Worker) -> None:
    process.terminate()
    process.wait()


def _wait(connection: psycopg.Connection, jobs: int, processes: list[Worker]) -> int:
    """Wait until so many jobs are done; return how many are."""
    until = time.monotonic() + PATIENCE
    while (done := int(_number(connection, "SELECT count(*) FROM done"))) < jobs:
        if time.monotonic() > until or any(one.poll() is not None for one in processes):
            raise SystemExit(
                "the jobs are not done, or a worker has ended: see its own words above"
            )
        time.sleep(0.02)
    return done


def _wait_until_idle(processes: list[Worker]) -> None:
    """Wait until the workers have nothing left to do: for half a second they use no CPU."""
    until = time.monotonic() + PATIENCE
    before = -1.0
    while (now := cpu.seconds_of(*(each.pid for each in processes))) - before > IDLE_CPU:
        if time.monotonic() > until:
            raise SystemExit("the workers do not come to rest")
        before = now
        time.sleep(0.5)


def _rate(connection: psycopg.Connection, jobs: int) -> float:
    seconds = _number(
        connection,
        f"SELECT extract(epoch FROM percentile_disc({LAST}) WITHIN GROUP (ORDER BY at)"
        f" - percentile_disc({FIRST}) WITHIN GROUP (ORDER BY at)) FROM done",
    )
    return (LAST - FIRST) * jobs / seconds


def _delays(connection: psycopg.Connection, after: int) -> list[float]:
    rows = connection.execute(
        "SELECT extract(epoch FROM done.at - ordered.at) FROM done JOIN ordered USING (number)"
        " WHERE number > %s",
        [after],
    )
    return [float(seconds) for (seconds,) in rows]


def _number(connection: psycopg.Connection, query: str) -> float:
    found = connection.execute(query).fetchone()
    assert found is not None
    return float(found[0])


def page(cells: list[Cell], missing: dict[str, str], jobs: int) -> str:
    """Return the page that is kept in the repository."""
    head = (
        "",
        "workers",
        "jobs/s (least–most)",
        "delay p50 ms",
        "p99 ms",
        "CPU ms to send",
        "CPU ms to do",
        "CPU ms of PostgreSQL",
    )
    rows = [_line(cell) for cell in cells if cell.rates]
    notes = "".join(f"- {variant.name}: {variant.note}\n" for variant in QUEUES)
    absent = "".join(f"- {name} was not measured: {why}\n" for name, why in missing.items())
    return (
        "# Deferred work\n\n"
        f"`python -m benchmarks.deferred --write` made this page: a backlog of {jobs} jobs, each sent with an order"
        " in one transaction, then one job every 50 ms to idle workers.\n"
        "The middle 80 % of the backlog is measured, so that no start is in it.\n"
        "Celery's workers are the processes of one pool, and it keeps its connections to the database"
        " (`CELERY_DB_REUSE_MAX`): by its default it makes one for each job.\n\n"
        f"{figures.table(head, rows)}\n{notes}{absent}"
    )


def _line(cell: Cell) -> list[object]:
    return [
        cell.variant.name,
        cell.workers,
        f"{statistics.median(cell.rates):.0f} ({min(cell.rates):.0f}–{max(cell.rates):.0f})",
        f"{figures.percentile(cell.delays, 0.5) * 1e3:.1f}",
        f"{figures.percentile(cell.delays, 0.99) * 1e3:.1f}",
        f"{statistics.median(cell.sending) * 1e3:.2f}",
        f"{statistics.median(cell.working) * 1e3:.2f}",
        f"{statistics.median(cell.serving) * 1e3:.2f}",
    ]


if __name__ == "__main__":
    main()
