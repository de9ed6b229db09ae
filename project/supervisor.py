"""Run the whole deployment on a developer's machine: `make run`.

Starts PostgreSQL and Valkey (unless DATABASE_URL and REDIS_URL name others), migrates, then starts
simulator, web, worker and beat, and keeps them running. Ends everything on Ctrl-C or SIGTERM, in
order; and when it is killed itself, the kernel ends the rest (see `project.lifeline`).
"""

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from payments.conf import DEMO_SECRET
from project import environment, parts
from project.banner import banner
from project.embedded import Postgres, Server, ServerFailed, Store
from project.embedded.server import port_taken
from project.follow import Follower
from project.parts import Part, Process, write_pid

TICK_SECONDS = 0.1
# After a kill of a former supervisor its ports are free a moment later.
PORT_SECONDS = 3.0
PREPARE_SECONDS = 120.0
READY_SECONDS = 90.0
# A stop may take ten seconds in all. What the parts do not need of it the servers get: PostgreSQL
# writes a checkpoint.
STOP_SECONDS = 8.0
PART_STOP_SECONDS = 5.5
# A proxy of the caller's shell has no business here.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Stopped(Exception):
    """Somebody asked for the end."""


class GaveUp(Exception):
    """It cannot go on; the message is the one line that says why."""


class Supervisor:
    """One run of the deployment, with its files under `var`."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.run_dir = var / "run"
        self.logs = var / "log"
        self.port = environment.port("PORT", 8000)
        self.simulator_port = environment.port("SIMULATOR_PORT", 12111)
        self.web_workers = environment.integer("WEB_WORKERS", 2, least=1, most=64)
        self.concurrency = environment.integer("WORKER_CONCURRENCY", 2, least=1, most=256)
        self.environment = self._environment()
        self.servers: list[Server] = []
        self.processes: list[Process] = []
        self.followers: dict[str, Follower] = {}
        self.stopping = False

    def run(self) -> None:
        """Start everything and keep it running until asked to stop. Raises: GaveUp."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        try:
            self.check_ports()
            self.start_servers()
            self.prepare()
            self.start_parts()
            self.await_ready()
            say(banner(port=self.port, simulator_port=self.simulator_port, logs=self.logs))
            while True:
                self.watch()
        except Stopped:
            pass
        except ServerFailed as error:
            raise GaveUp(str(error)) from error
        finally:
            self.stop()

    def check_ports(self) -> None:
        """Refuse a port that somebody else listens on. Raises: GaveUp."""
        for variable, number in (("PORT", self.port), ("SIMULATOR_PORT", self.simulator_port)):
            end = time.monotonic() + PORT_SECONDS
            while port_taken(number):
                if time.monotonic() > end:
                    raise GaveUp(f"port {number} is in use: choose another one with {variable}=…")
                self.pause()

    def start_servers(self) -> None:
        """Start the servers that the environment does not name."""
        home = self.var / "servers"
        wanted: list[tuple[str, Callable[[], Server]]] = [
            ("DATABASE_URL", lambda: Postgres(home=home / "postgres")),
            ("REDIS_URL", lambda: Store(home=home / "valkey")),
        ]
        for variable, make in wanted:
            if self.environment.get(variable):
                say(f"Using {variable} from the environment")
                continue
            server = make()
            self.servers.append(server)
            begun = time.monotonic()
            self.environment[variable] = server.start()
            if server.process:
                write_pid(self.run_dir / f"{server.name}.pid", server.process.pid)
            say(f"{server.name} on port {server.port} ({time.monotonic() - begun:.1f} s)")
        self._share_environment()

    def prepare(self) -> None:
        """Migrate and make the demo accounts. Raises: GaveUp, Stopped."""
        begun = time.monotonic()
        process = Process(
            Part("prepare", ("-m", "project.prepare")), logs=self.logs, environment=self.environment
        )
        seen = process.log.stat().st_size if process.log.exists() else 0
        process.start()
        try:
            while process.running:
                if time.monotonic() - begun > PREPARE_SECONDS:
                    raise GaveUp(f"the migrations do not end: see {process.log}")
                self.pause()
            if not process.succeeded:
                said = process.log.read_bytes()[seen:].decode(errors="replace").strip()
                raise GaveUp(f"migrating failed: {said.rpartition(chr(10))[2]}; see {process.log}")
        finally:
            process.end()
        say(f"database migrated ({time.monotonic() - begun:.1f} s)")

    def start_parts(self) -> None:
        """Start simulator, web, worker and beat."""
        simulator_data = self.var / "simulator"
        simulator_data.mkdir(parents=True, exist_ok=True)
        wanted = [
            parts.simulator(
                port=self.simulator_port,
                data=simulator_data,
                webhook_url=f"http://127.0.0.1:{self.port}/api/webhooks/stripe/",
                webhook_secret=self.environment["PAYMENTS_WEBHOOK_SECRET"],
            ),
            parts.web(port=self.port, workers=self.web_workers),
            parts.worker(concurrency=self.concurrency),
            parts.beat(),
        ]
        for part in wanted:
            process = Process(part, logs=self.logs, environment=self.environment, pids=self.run_dir)
            self.followers[part.name] = Follower(process.log)
            process.start()
            self.processes.append(process)
        say(f"starting {', '.join(part.name for part in wanted)}")

    def await_ready(self) -> None:
        """Wait until a request would be served. Raises: GaveUp, Stopped."""
        end = time.monotonic() + READY_SECONDS
        while not (answers(self.port, "/readyz/") and port_taken(self.simulator_port)):
            if time.monotonic() > end:
                raise GaveUp(f"not ready after {READY_SECONDS:g} s: see {self.logs}")
            self.watch()

    def watch(self) -> None:
        """Look after everything once. Raises: GaveUp, Stopped."""
        self.pause()
        for server in self.servers:
            if not server.running:
                raise GaveUp(f"{server.name} died, so everything stops: see {server.log}")
        for process in self.processes:
            name = process.part.name
            for line in self.followers[name].news():
                say(f"{name} | {line}")
            word = process.keep_alive()
            if word:
                say(f"{name} {word}")

    def pause(self) -> None:
        """Wait a moment. Raises: Stopped."""
        if self.stopping:
            raise Stopped
        time.sleep(TICK_SECONDS)

    def stop(self) -> None:
        """End everything within ten seconds, what others depend on last."""
        if not self.servers and not self.processes:
            return
        say("stopping")
        for process in reversed(self.processes):
            process.ask_to_stop()
        begun = time.monotonic()
        for process in self.processes:
            process.wait(begun + PART_STOP_SECONDS - time.monotonic())
        for process in self.processes:
            process.end()
        for server in reversed(self.servers):
            # Half of what is left for the store, all of the rest for the database after it.
            left = max(0.5, begun + STOP_SECONDS - time.monotonic())
            server.stop(grace=left if server is self.servers[0] else left / 2)
            (self.run_dir / f"{server.name}.pid").unlink(missing_ok=True)
        (self.run_dir / "environment").unlink(missing_ok=True)
        say("stopped")

    def _ask_to_stop(self, *_: object) -> None:
        self.stopping = True

    def _environment(self) -> dict[str, str]:
        metrics = self.var / "run" / "metrics"
        metrics.mkdir(parents=True, exist_ok=True)
        for old in metrics.glob("*.db"):
            old.unlink()
        defaults = {
            "DEBUG": "1",
            "PAYMENTS_GATEWAY_URL": f"http://127.0.0.1:{self.simulator_port}",
            # Shared by the simulator, which signs with it.
            "PAYMENTS_WEBHOOK_SECRET": DEMO_SECRET,
        }
        return (
            defaults
            | os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "project.settings",
                "PROMETHEUS_MULTIPROC_DIR": str(metrics),
                "PYTHONUNBUFFERED": "1",
            }
        )

    def _share_environment(self) -> None:
        """Write down how to reach this run, for `manage.py` in the same checkout."""
        names = ("DEBUG", "DATABASE_URL", "REDIS_URL", "PAYMENTS_GATEWAY_URL")
        lines = [f"{name}={self.environment[name]}\n" for name in names]
        path = self.run_dir / "environment"
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.writelines(lines)


def main() -> int:
    """Run until stopped; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--var", type=Path, default=parts.ROOT / "var", help="folder for all files")
    var: Path = parser.parse_args().var.absolute()
    try:
        with only_one(var / "run"):
            Supervisor(var).run()
    except (GaveUp, ImproperlyConfigured) as error:
        say(f"error: {error}")
        return 1
    return 0


@contextlib.contextmanager
def only_one(run_dir: Path) -> Iterator[None]:
    """Hold the folder against a second supervisor. Raises: GaveUp."""
    run_dir.mkdir(parents=True, exist_ok=True)
    pid_file = run_dir / "supervisor.pid"
    with (run_dir / "supervisor.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = pid_file.read_text().strip() if pid_file.exists() else "?"
            raise GaveUp(f"it runs here already (process {pid}): stop that one first") from error
        write_pid(pid_file, os.getpid())
        try:
            yield
        finally:
            pid_file.unlink(missing_ok=True)


def answers(port: int, path: str) -> bool:
    """Return whether the web server on this port answers the path with success."""
    try:
        with DIRECT.open(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def say(text: str) -> None:
    """Print at once, also into a pipe; the terminal may be gone already."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
