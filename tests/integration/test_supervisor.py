"""`make run` from outside: it starts, keeps its parts alive, and leaves nothing behind."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from project.embedded.server import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

START_SECONDS = 90.0
STOP_SECONDS = 10.0
PARTS = ("web", "worker", "beat", "simulator")
SERVERS = ("postgres", "valkey")


class Run:
    """One run of the supervisor, with its files in a folder of its own."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.port = free_port()
        self.simulator_port = free_port()
        self.output = var.with_suffix(".out")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "subprocess.Popen[bytes]":
        unwanted = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "PROCESS_ROLE")
        environment = {k: v for k, v in os.environ.items() if k not in unwanted} | {
            "PORT": str(self.port),
            "SIMULATOR_PORT": str(self.simulator_port),
            "WEB_WORKERS": "1",
            "WORKER_CONCURRENCY": "1",
        }
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "project.supervisor", "--var", str(self.var)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
            )
        return self.process

    def ready(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"it ended: {self.output.read_text()}")
        return "\nReady.\n" in self.output.read_text()

    def pid(self, name: str) -> int:
        try:
            return int((self.var / "run" / f"{name}.pid").read_text())
        except FileNotFoundError:
            return 0

    def everybody(self) -> list[psutil.Process]:
        """Return all processes of this run: its parts, and their children's children."""
        parts = [psutil.Process(pid) for pid in map(self.pid, (*PARTS, *SERVERS)) if pid]
        return [*parts, *(child for part in parts for child in part.children(recursive=True))]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/readyz/", timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def wait_until(condition: Callable[[], bool], seconds: float) -> float:
    """Wait until it holds; return how long that took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds
        time.sleep(0.05)
    return time.monotonic() - begun


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that live; one that nobody has reaped yet does not."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    made = Run(tmp_path / "var")
    yield made
    if made.process is not None:
        made.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            made.process.wait(15)
        made.process.kill()
        made.process.wait()
    pointer = made.var / "servers" / "postgres" / "DATA_IS_IN"
    if pointer.exists():
        shutil.rmtree(pointer.read_text().strip())
    print(made.output.read_text())


def test_parts_come_back_and_an_orderly_stop_leaves_nothing(run: Run) -> None:
    process = run.start()
    wait_until(run.ready, START_SECONDS)
    assert run.pid("supervisor") == process.pid
    before = {name: run.pid(name) for name in PARTS}
    assert all(before.values())
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(run.pid(name) not in {0, before[name]} for name in PARTS), START_SECONDS)
    wait_until(run.answers, START_SECONDS)
    everybody = run.everybody()
    assert len(everybody) > len(PARTS) + len(SERVERS)

    process.send_signal(signal.SIGINT)
    took = wait_until(lambda: process.poll() is not None, 15)
    assert process.returncode == 0
    assert took < STOP_SECONDS
    wait_until(lambda: not alive(everybody), 2)
    assert not list((run.var / "run").glob("*.pid"))
    last = (run.var / "servers" / "postgres" / "postgres.log").read_text()
    assert "database system is shut down" in last


def test_nothing_remains_of_a_killed_supervisor_and_the_next_one_starts(run: Run) -> None:
    process = run.start()
    wait_until(run.ready, START_SECONDS)
    everybody = run.everybody()
    process.kill()
    process.wait()
    wait_until(lambda: not alive(everybody), STOP_SECONDS)
    run.output.write_text("")
    again = run.start()
    wait_until(run.ready, START_SECONDS)
    # The store's turn here, so that this start is not for nothing; the database's is below.
    assert_dead_server_stops_everything(run, again, "valkey")


def test_dead_database_stops_everything_with_one_line(run: Run) -> None:
    process = run.start()
    wait_until(run.ready, START_SECONDS)
    assert_dead_server_stops_everything(run, process, "postgres")


def assert_dead_server_stops_everything(
    run: Run, process: "subprocess.Popen[bytes]", server: str
) -> None:
    everybody = run.everybody()
    os.kill(run.pid(server), signal.SIGKILL)
    wait_until(lambda: process.poll() is not None, 15)
    assert process.returncode == 1
    # Backends of a killed PostgreSQL notice on their own.
    wait_until(lambda: not alive(everybody), STOP_SECONDS)
    errors = re.findall(r"^error: (.*)$", run.output.read_text(), re.MULTILINE)
    assert len(errors) == 1
    assert errors[0].startswith(f"{server} died")


def test_second_one_in_the_same_place_is_refused_with_one_line(run: Run) -> None:
    process = run.start()
    wait_until(lambda: run.pid("supervisor") != 0, START_SECONDS)
    second = subprocess.run(
        [sys.executable, "-m", "project.supervisor", "--var", str(run.var)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert second.returncode == 1
    assert second.stdout == (
        f"error: it runs here already (process {process.pid}): stop that one first\n"
    )
    assert second.stderr == ""


def test_port_in_use_is_one_line_that_names_the_variable(run: Run) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", run.simulator_port))
        taken.listen()
        process = run.start()
        wait_until(lambda: process.poll() is not None, 30)
    assert process.returncode == 1
    assert run.output.read_text() == (
        f"error: port {run.simulator_port} is in use: choose another one with SIMULATOR_PORT=…\n"
    )


def test_malformed_setting_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDEMPOTENCY_LEASE", "soon")
    process = run.start()
    wait_until(lambda: process.poll() is not None, 60)
    assert process.returncode == 1
    errors = re.findall(r"^error: (.*)$", run.output.read_text(), re.MULTILINE)
    assert len(errors) == 1
    assert "IDEMPOTENCY_LEASE='soon' is not a number" in errors[0]
