"""One try: one signed POST to an address that a merchant named, by the rules for such addresses.

The answer's status is all that is read of it. A redirect is an answer like any other that is not 2xx: a merchant who
moves changes the endpoint. No try lasts longer than `ENDPOINT_TIMEOUT`, whatever the other side does.
"""

from dataclasses import dataclass
from functools import cache
from threading import Lock

import httpx2

from idempotency.clock import SYSTEM
from idempotency.exceptions import CallError
from idempotency.resilience import Guard, RetryPolicy, http_client
from idempotency.resilience.signs import retry_after
from payments.completion.addresses import admitted
from payments.conf import conf

_CONNECTIONS = 32
_making = Lock()


@dataclass(frozen=True, slots=True)
class Tried:
    """How one try ended."""

    milliseconds: int
    status: int | None = None
    """Of the answer; None where there was none."""
    error: str = ""
    retry_after: float | None = None
    """The receiver's word, in seconds."""
    sent: bool = True
    """Whether a byte may have left."""

    @property
    def arrived(self) -> bool:
        """Whether the receiver has said that it has the event."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def told(self) -> str:
        """How it ended, in words."""
        return f"answered {self.status}" if self.status is not None else self.error


def post(*, url: str, body: bytes, headers: dict[str, str]) -> Tried:
    """Make the one request, and say how it ended; whatever the other side does, that is no exception here."""
    began = SYSTEM.now()
    try:
        answer = _guard(conf.ENDPOINT_TIMEOUT).call(lambda _: _send(url, body, headers))
    except CallError as error:
        report = error.report
        return Tried(
            _since(began),
            error=(report.last_error if report else "") or error.code,
            sent=report.sent if report else False,
        )
    return Tried(_since(began), status=answer.status, retry_after=answer.retry_after)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    retry_after: float | None


def _send(url: str, body: bytes, headers: dict[str, str]) -> _Answer:
    # Left before its body is read, the answer cannot be too long, and the connection is closed.
    with _client().stream("POST", url, content=body, headers=headers) as response:
        return _Answer(response.status_code, retry_after(response, now=SYSTEM.wall()))


def _since(began: float) -> int:
    return round((SYSTEM.now() - began) * 1000)


@cache
def _guard(timeout: float) -> Guard:
    return Guard(
        name="merchants' endpoints",
        # The ledger tries again, later. Every ending is certain enough: a receiver that had it knows it by its id.
        policy=RetryPolicy(attempts=1, attempt_timeout=timeout, series=timeout),
        effect=False,
    )


@cache
def _made() -> httpx2.Client:
    return http_client(
        timeout=20,
        connect_timeout=20,
        connections=_CONNECTIONS,
        headers={"User-Agent": "idempotency-ledger-webhooks/1", "Content-Type": "application/json"},
        admits=admitted,
    )


def _client() -> httpx2.Client:
    with _making:
        return _made()
