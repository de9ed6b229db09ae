"""The deployment that the machine breaks: real processes that heal in seconds, by settings the checks allow."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.conf import LazySettings

from project.embedded.server import free_port
from project.parts import ROOT
from tests.faults.machine.facts import Effect
from tests.support.armed.plan import HOME, Struck, struck
from tests.support.stack import Stack

REQUEST_BUDGET, OPERATION_LIMIT, SETTLING, SWEEP = 3.0, 3.0, 1.5, 0.5
TASK_LIMIT, LEASE = 8.0, 8.5
HEALS_WITHIN = LEASE + SETTLING + SWEEP
# Longer than anybody waits for it: the key has another owner when it goes on.
FROZEN_SECONDS = HEALS_WITHIN + 1

IDEMPOTENCY: dict[str, Any] = {
    "REQUEST_BUDGET": REQUEST_BUDGET,
    "OPERATION_TIME_LIMIT": OPERATION_LIMIT,
    "LEASE": LEASE,
    "RECONCILE_EVERY": SWEEP,
    "WAKE_EVERY": SWEEP,
    "LOOKUP_BACKOFF_CAP": 2.0,
}
PAYMENTS: dict[str, Any] = {
    "GATEWAY_TIMEOUT": 1.0,
    "GATEWAY_ATTEMPTS": 2,
    "FOLLOW_EVERY": 1.0,
    "BREAKER_OPEN": 1.0,
    # Each cell has its own fault: one must not close the way for the others.
    "BREAKER_MIN_CALLS": 1_000_000,
}
ARMED_WORKERS = 6
# More than are frozen or hang at one time, in two workers of which one is killed: who is to heal must not wait.
WORKER_PROCESSES = 5
WORKERS = ("worker", "second_worker")


class Deployment:
    """A stack with short times: an armed web whose processes serve one request at a time, and the rest."""

    def __init__(
        self,
        stack: Stack,
        settings: LazySettings,
        *,
        keyed: bool,
        breaker: bool = False,
        settling: float = SETTLING,
    ) -> None:
        self.stack = stack
        self.keyed = keyed
        self.home = stack.home / "armed"
        self.home.mkdir()
        payments = {**PAYMENTS, "GATEWAY_KEYED": keyed, "GATEWAY_SETTLING_TIME": settling}
        if breaker:
            del payments["BREAKER_MIN_CALLS"]
        stack.environment |= {
            "DJANGO_SETTINGS_MODULE": "tests.support.armed.settings",
            "ARMED_TASK_TIME_LIMIT": str(TASK_LIMIT),
            HOME: str(self.home),
            **{f"IDEMPOTENCY_{name}": str(value) for name, value in IDEMPOTENCY.items()},
            **{f"PAYMENTS_{name}": str(value) for name, value in payments.items()},
        }
        # The test's own process acts as staff: on the same terms as the others.
        settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, **IDEMPOTENCY}
        settings.PAYMENTS = {
            **settings.PAYMENTS,
            **payments,
            "GATEWAY_URL": stack.simulator_url,
            "GATEWAY_API_KEY": "sk_test_of_the_machine",
        }
        self._frozen: dict[int, float] = {}
        self._thaws: list[threading.Timer] = []

    def start(self, *, armed: bool = True) -> None:
        """Start all but beat. Only from the test's main thread."""
        self.stack.ports.setdefault("web", free_port())
        self.stack.start_simulator(webhooks=True, keys=self.keyed)
        self.stack.simulate("PUT", "/_sim/config", {"webhooks": "off"})
        self.stack.start_web(workers=2)
        if armed:
            # Loaded once and forked: the process after a killed one is there at once.
            self.stack.start_web(
                name="armed",
                workers=ARMED_WORKERS,
                environment={"WEB_THREADS": "1", "GUNICORN_CMD_ARGS": "--preload --timeout 60"},
            )
        for name in WORKERS:
            self.stack.start_worker(name=name, concurrency=WORKER_PROCESSES)

    def restart(self, name: str, *, environment: Mapping[str, str] | None = None) -> None:
        """Kill a process as a crash does, and start it again."""
        self.stack.kill(name)
        if name in WORKERS:
            self.stack.start_worker(
                name=name, concurrency=WORKER_PROCESSES, environment=environment
            )
        elif name == "web":
            self.stack.start_web(workers=2, environment=environment)
        elif name == "simulator":
            self.stack.start_simulator(webhooks=True, keys=self.keyed)
        else:
            self.stack.start(name)

    def revive(self) -> None:
        """Start what has died by itself, as the supervisor of a deployment does."""
        for name, process in list(self.stack.processes.items()):
            if not process.running:
                self.restart(name)

    def freeze(self, send: Callable[[signal.Signals], object], *, seconds: float) -> None:
        """Stop what the signal goes to; it goes on by itself, whatever the test waits for meanwhile."""
        timer = threading.Timer(seconds, send, [signal.SIGCONT])
        timer.daemon = True
        self._thaws.append(timer)
        send(signal.SIGSTOP)
        timer.start()

    def thaw_all(self) -> None:
        """Let everything that `freeze` has stopped go on now."""
        for timer in self._thaws:
            timer.cancel()
            timer.function(*timer.args)

    @property
    def armed_url(self) -> str:
        return self.stack.url("armed")

    @property
    def url(self) -> str:
        return self.stack.web_url

    def effects(self) -> list[Effect]:
        """Return the money that really moved, by the gateway's own record."""
        return list(self.stack.effects())

    def manage(self, *words: str) -> str:
        """Run a management command as a process of its own; return what it says."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={**self.stack.environment, "PROCESS_ROLE": "command"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"manage.py {' '.join(words)}: {done.stderr[-3000:]}")
        return done.stdout

    # -- what was struck -------------------------------------------------------------------------

    def struck(self, key: str) -> Struck | None:
        """Return where and when a key's fault has struck."""
        return struck(self.home, key)

    def thaw(self, keys: Iterable[str], *, after: float = FROZEN_SECONDS) -> bool:
        """Let the processes that were frozen so long ago go on; return whether none is left."""
        left = False
        for key in keys:
            at = self.struck(key)
            if at is None or not key.endswith("~stop") or self._frozen.get(at.pid) == at.at:
                continue
            if time.time() - at.at < after:
                left = True
                continue
            self._frozen[at.pid] = at.at
            if _is_python(at.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(at.pid, signal.SIGCONT)
        return not left


def _is_python(pid: int) -> bool:
    """Whether it still is what it was; a process id comes back."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return b"python" in file.read()
    except OSError:
        return False
