"""The deployment as real processes, for tests that kill, freeze and restart them.

    def test_a_killed_worker_loses_nothing(live_stack: Stack) -> None:
        live_stack.start("simulator", "web", "worker")
        answer = live_stack.post("/api/payouts/", {...}, key="k1")
        live_stack.kill("worker")
        live_stack.start("worker")
        live_stack.wait_until(lambda: live_stack.effects(), "the payout is made")

The processes work on the same database as the test, which can therefore look at rows with the ORM.
Call `start` from the test's main thread only: the kernel ends a process with the thread that made
it.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import requests
from django.db import connection

from project import parts
from project.embedded.server import HOST, free_port
from project.parts import Part, Process

T = TypeVar("T")

WEBHOOK_SECRET = "whsec_of_the_tests"
START_SECONDS = 90.0
POLL_SECONDS = 0.05
# What Celery's two programs log when they are up.
READY_WORDS = {"worker": " ready.", "beat": "beat: Starting..."}


def database_url() -> str:
    """Return the address of the tests' own database."""
    at = connection.settings_dict
    login = f"{quote(at['USER'])}:{quote(at['PASSWORD'])}"
    return f"postgresql://{login}@{at['HOST']}:{at['PORT']}/{at['NAME']}"


class Stack:
    """Real processes by name: "web", "worker", "beat", "simulator", and further ones.

    `environment` may be changed before a process starts, e.g. `IDEMPOTENCY_LEASE`; it holds for
    all that start afterwards.
    """

    def __init__(
        self,
        *,
        database_url: str,
        store_url: str,
        home: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.processes: dict[str, Process] = {}
        self._log_begins: dict[str, int] = {}
        # Fixed for the stack's life, so that one process can be restarted alone.
        self.ports: dict[str, int] = {"web": free_port(), "simulator": free_port()}
        self.environment = {
            **os.environ,
            "DEBUG": "1",
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DATABASE_URL": database_url,
            "REDIS_URL": store_url,
            "PAYMENTS_GATEWAY_URL": self.simulator_url,
            "PAYMENTS_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "PYTHONUNBUFFERED": "1",
            **(environment or {}),
        }
        self._http = requests.Session()
        # A proxy of the caller's shell has no business here.
        self._http.trust_env = False
        # A connection that is kept may be closed just when it is used again.
        self._http.headers["Connection"] = "close"

    @property
    def web_url(self) -> str:
        """Return the address of "web", without a slash at its end."""
        return self.url("web")

    @property
    def simulator_url(self) -> str:
        """Return the address of "simulator", without a slash at its end."""
        return self.url("simulator")

    @property
    def broker_url(self) -> str:
        """Return where its processes publish and listen."""
        return self.environment.get("CELERY_BROKER_URL") or self.environment["REDIS_URL"]

    def url(self, name: str) -> str:
        """Return the address of a process that serves HTTP."""
        return f"http://{HOST}:{self.ports[name]}"

    def __getitem__(self, name: str) -> Process:
        return self.processes[name]

    # -- processes -------------------------------------------------------------------------------

    def start(self, *names: str, environment: Mapping[str, str] | None = None) -> None:
        """Start the named parts side by side and wait until each is ready."""
        makers: dict[str, Callable[[], Part]] = {
            "web": lambda: parts.web(port=self.ports["web"], workers=1),
            "worker": lambda: parts.worker(concurrency=1),
            "beat": parts.beat,
            "simulator": lambda: self._simulator(webhooks=False, keys=True),
        }
        for name in names:
            self._launch(makers[name](), environment)
        for name in names:
            self._await_ready(name)

    def start_web(
        self, *, name: str = "web", workers: int = 1, environment: Mapping[str, str] | None = None
    ) -> str:
        """Start a web server, on a port of its own per name; return its address once it answers."""
        part = parts.web(port=self.ports.setdefault(name, free_port()), workers=workers)
        self._launch(replace(part, name=name), environment)
        self._await_ready(name)
        return self.url(name)

    def start_worker(
        self,
        *,
        name: str = "worker",
        concurrency: int = 1,
        queue: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a Celery worker and wait until it takes tasks, from another queue than its own where one is named."""
        part = parts.worker(name=name, concurrency=concurrency)
        words = [*part.words, "--queues", queue] if queue else part.words
        self._launch(replace(part, words=words), environment)
        self._await_ready(name)

    def start_simulator(self, *, webhooks: bool = False, keys: bool = True) -> str:
        """Start the gateway simulator on its record so far; return its address."""
        self._launch(self._simulator(webhooks=webhooks, keys=keys), None)
        self._await_ready("simulator")
        return self.simulator_url

    def launch(self, part: Part) -> None:
        """Start a part as it is given, and wait until it is ready."""
        self._launch(part, None)
        self._await_ready(part.name)

    def kill(self, name: str) -> None:
        """End a process and its children at once, as a crash does."""
        self.processes.pop(name).end()

    def stop(self, name: str, *, seconds: float = 15.0) -> None:
        """Ask a process to stop and wait for it. Raises: TimeoutError."""
        process = self.processes[name]
        process.ask_to_stop()
        if not process.wait(seconds):
            raise TimeoutError(f"{name} did not stop in {seconds} s: {self.logs(name)[-2000:]}")
        del self.processes[name]

    def freeze(self, name: str) -> None:
        """Stop a process and its children where they are, until `thaw`."""
        self.processes[name].signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Let a frozen process go on."""
        self.processes[name].signal(signal.SIGCONT)

    def logs(self, name: str) -> str:
        """Return all that processes of this name have written."""
        path = self.home / "log" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """End everything; print the ends of the logs, which pytest shows for a failed test."""
        for process in self.processes.values():
            process.end()
        self._http.close()
        for path in sorted((self.home / "log").glob("*.log")):
            print(f"-- {path.name}\n{path.read_text(errors='replace')[-4000:]}")

    # -- talking to it ---------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        token: str = "demo-merchant-a",
        web: str = "web",
        headers: Mapping[str, str] | None = None,
        timeout: float = 20.0,
    ) -> requests.Response:
        """Send a request to a web process as a demo merchant."""
        sent = {"Authorization": f"Token {token}", **(headers or {})}
        if key is not None:
            sent["Idempotency-Key"] = key
        return self._http.request(
            method,
            f"{self.url(web)}{path}",
            json=body,
            headers=sent,
            timeout=timeout,
            allow_redirects=False,
        )

    def post(self, path: str, body: object = None, **options: Any) -> requests.Response:
        """POST as `request` does."""
        return self.request("POST", path, body, **options)

    def get(self, path: str, **options: Any) -> requests.Response:
        """GET as `request` does."""
        return self.request("GET", path, **options)

    def simulate(self, method: str, path: str, body: object = None) -> Any:
        """Call one of the simulator's controls, e.g. `"POST", "/_sim/faults"`; return its JSON."""
        answer = self._http.request(method, f"{self.simulator_url}{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def effects(self) -> list[dict[str, Any]]:
        """Return the money that really moved, by the gateway's own record."""
        found = self.simulate("GET", "/_sim/effects")
        if not isinstance(found, list):
            raise TypeError(f"a list of effects is wanted, not {found!r}")
        return found

    def wait_until(
        self, condition: Callable[[], T], what: str, *, seconds: float = START_SECONDS
    ) -> T:
        """Ask until the answer is true; return it. Raises: TimeoutError, saying what was awaited."""
        end = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s: {what}")
            time.sleep(POLL_SECONDS)

    # -- how each starts -------------------------------------------------------------------------

    def _simulator(self, *, webhooks: bool, keys: bool) -> Part:
        data = self.home / "simulator"
        data.mkdir(parents=True, exist_ok=True)
        return parts.simulator(
            port=self.ports["simulator"],
            data=data,
            webhook_url=f"{self.web_url}/api/webhooks/stripe/" if webhooks else "",
            webhook_secret=WEBHOOK_SECRET,
            keys=keys,
        )

    def _launch(self, part: Part, environment: Mapping[str, str] | None) -> None:
        if part.name in self.processes:
            raise ValueError(f"{part.name} was started already")
        self._log_begins[part.name] = len(self.logs(part.name))
        process = Process(
            part, logs=self.home / "log", environment={**self.environment, **(environment or {})}
        )
        process.start()
        self.processes[part.name] = process

    def _await_ready(self, name: str) -> None:
        process = self.processes[name]

        def ready() -> bool:
            said = self.logs(name)[self._log_begins[name] :]
            if not process.running:
                raise RuntimeError(f"{name} ended at its start: {said[-3000:]}")
            if name in self.ports:
                return self._answers(name)
            return READY_WORDS[process.part.words[4]] in said

        self.wait_until(ready, f"{name} is ready")

    def _answers(self, name: str) -> bool:
        try:
            self._http.get(f"{self.url(name)}/healthz/", timeout=2)
        except requests.RequestException:
            return False
        return True
