"""The gateway simulator as a process, its control routes, and the official client."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import requests
import stripe

ROOT = Path(__file__).parents[2]

T = TypeVar("T")


class Gateway:
    """A running simulator. `control` speaks to `/_sim/…`, `client` is Stripe's own."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def control(self, method: str, path: str, content: object = None) -> Any:
        answer = requests.request(method, f"{self.url}/_sim/{path}", json=content, timeout=15)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused_control(self, method: str, path: str, content: object = None) -> Any:
        answer = requests.request(method, f"{self.url}/_sim/{path}", json=content, timeout=15)
        assert answer.status_code == 400, answer.text
        return answer.json()["error"]["field"]

    def configure(self, **changes: object) -> None:
        self.control("PUT", "config", changes)

    def add_fault(self, kind: str, path: str = "/v1/payment_intents", **more: object) -> None:
        self.control("POST", "faults", {"path": path, "kind": kind, "times": 1, **more})

    def effects(self) -> list[dict[str, Any]]:
        effects: list[dict[str, Any]] = self.control("GET", "effects")
        return effects

    def requests(self) -> list[dict[str, Any]]:
        received: list[dict[str, Any]] = self.control("GET", "requests")
        return received

    @contextmanager
    def client(self, timeout: float = 5.0) -> Iterator[stripe.StripeClient]:
        transport = stripe.RequestsClient(timeout=timeout)
        yield stripe.StripeClient(
            "sk_test_any",
            base_addresses={"api": self.url},
            max_network_retries=0,
            http_client=transport,
        )
        transport.close()  # type: ignore[no-untyped-call]

    def charge(
        self,
        *,
        key: str | None = None,
        token: str = "pm_card_visa",
        amount: int = 1000,
        reference: str = "ref-1",
        timeout: float = 5.0,
        **more: Any,
    ) -> stripe.PaymentIntent:
        with self.client(timeout) as client:
            params: Any = {
                "amount": amount,
                "currency": "eur",
                "payment_method": token,
                "confirm": True,
                "metadata": {"reference": reference},
                **more,
            }
            return client.v1.payment_intents.create(params, {"idempotency_key": key} if key else {})

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=10)


@contextmanager
def running(data_dir: Path, *flags: str) -> Iterator[Gateway]:
    """Start a simulator on a free port; end it with SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "payments.simulator", "--port=0", f"--data-dir={data_dir}", *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        first_line = process.stdout.readline()
        yield Gateway(process, first_line.split()[-1])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=10)
        process.stdout.close()


def eventually(read: Callable[[], T], until: Callable[[T], bool], *, within: float = 10.0) -> T:
    """Read until a condition holds; return what was read last."""
    ends = time.monotonic() + within
    while not until(seen := read()):
        assert time.monotonic() < ends, f"still {seen!r}"
        time.sleep(0.01)
    return seen
