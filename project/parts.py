"""The processes that a deployment consists of: how each is started, watched, stopped.

The supervisor runs them for a developer, and the tests run the same ones.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from project import lifeline

ROOT = Path(__file__).resolve().parent.parent
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0
# A process that lived so long did not fail because of the one before.
SETTLED_SECONDS = 30.0
LOG_BYTES = 10_000_000


@dataclass(frozen=True)
class Part:
    """A kind of process: its name, the words after the interpreter, its own environment."""

    name: str
    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def web(*, port: int, workers: int = 2) -> Part:
    """Return the web server."""
    return Part(
        "web",
        ("-m", "gunicorn", "--config", "python:project.gunicorn"),
        {"PORT": str(port), "WEB_WORKERS": str(workers), "PROCESS_ROLE": "web"},
    )


def worker(*, concurrency: int = 2, name: str = "worker") -> Part:
    """Return the Celery worker."""
    return Part(
        name,
        (
            *("-m", "celery", "-A", "project", "worker", "--concurrency", str(concurrency)),
            # Workers need not know of one another: the rows decide who does what.
            *("--hostname", f"{name}@%h", "--without-gossip", "--without-mingle"),
        ),
        {"PROCESS_ROLE": "worker"},
    )


def beat() -> Part:
    """Return Celery beat."""
    return Part("beat", ("-m", "celery", "-A", "project", "beat"), {"PROCESS_ROLE": "worker"})


def simulator(
    *, port: int, data: Path, webhook_url: str = "", webhook_secret: str = "", keys: bool = True
) -> Part:
    """Return the gateway simulator, which keeps its record in the folder `data`."""
    words = ["-m", "payments.simulator", "--host", "127.0.0.1", "--port", str(port)]
    words += ["--data-dir", str(data)]
    if webhook_url:
        words += ["--webhook-url", webhook_url, "--webhook-secret", webhook_secret]
    return Part("simulator", words if keys else [*words, "--no-keys"])


class Process:
    """One running part, in a process group of its own, which dies with its starter."""

    def __init__(
        self, part: Part, *, logs: Path, environment: Mapping[str, str], pids: Path | None = None
    ) -> None:
        self.part = part
        self.log = logs / f"{part.name}.log"
        self.starts = 0
        self._environment = {**environment, **part.environment}
        self._pid_file = pids / f"{part.name}.pid" if pids else None
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._pause = FIRST_PAUSE
        self._restart_at: float | None = None

    @property
    def pid(self) -> int:
        """Return the process id. Raises: RuntimeError where it is not running."""
        if self._process is None:
            raise RuntimeError(f"{self.part.name} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Return whether it lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def succeeded(self) -> bool:
        """Return whether it ended well."""
        return self._process is not None and self._process.poll() == 0

    def start(self) -> None:
        """Start it; its words go to its log."""
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                lifeline.command([sys.executable, *self.part.words], death=signal.SIGKILL),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=ROOT,
                env=self._environment,
                process_group=0,
            )
        self.starts += 1
        self._started_at = time.monotonic()
        self._restart_at = None
        if self._pid_file:
            write_pid(self._pid_file, self.pid)

    def keep_alive(self) -> str:
        """Start it again if it died and its pause is over; return what is worth telling, or ""."""
        if self.running or self._process is None:
            return ""
        now = time.monotonic()
        if self._restart_at is None:
            # Its children too: they may hold its port.
            self.signal(signal.SIGKILL)
            if now - self._started_at > SETTLED_SECONDS:
                self._pause = FIRST_PAUSE
            pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE)
            self._restart_at = now + pause
            return f"died ({_ending(self._process.returncode)}); starts again in {pause:g} s"
        if now >= self._restart_at:
            self.start()
            return "started again"
        return ""

    def signal(self, number: signal.Signals, *, group: bool = True) -> None:
        """Send a signal to it and its children, or to it alone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def ask_to_stop(self) -> None:
        """Ask it to end its work and leave."""
        if self.running:
            # Alone: it tells its children itself, when it is their turn.
            self.signal(signal.SIGTERM, group=False)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; return whether it ended in time."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """End what is left of it, by force."""
        if self._process is not None:
            self.signal(signal.SIGKILL)
            self._process.wait()
        if self._pid_file:
            self._pid_file.unlink(missing_ok=True)


def write_pid(path: Path, pid: int) -> None:
    """Write a process id so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(f"{pid}\n")
    draft.replace(path)


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
