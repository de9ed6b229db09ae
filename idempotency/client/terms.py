"""What both clients are made with, and how a call's words become a request."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from idempotency.client.answer import Answer
from idempotency.client.errors import IntentsUnavailable, StillOpen
from idempotency.client.intents import Intent, Intents, Request
from idempotency.clock import Clock
from idempotency.exceptions import CallFailed, CallRejected, CallUnknown, Misuse
from idempotency.resilience import Guard, RetryPolicy

logger = logging.getLogger(__name__)

POLICY = RetryPolicy(attempts=4, base=0.2, cap=5.0, attempt_timeout=15.0, series=60.0, reserve=0.0)
"""Longer per attempt than the server's own budget for a request (12 s by default), so that it can still answer."""
DEADLINE = 60.0
"""Seconds for one call with all its attempts and waits."""
KEY_MEMORY = 29 * 86_400.0
"""Seconds for which the server surely knows a key: its `KEY_TTL` (30 days by default) less a margin."""
FOLLOW_DEADLINE = 600.0
"""Seconds for which deferred work is followed."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a client was told."""

    base_url: str
    store: Intents
    policy: RetryPolicy
    deadline: float
    key_memory: float
    clock: Clock

    def keep(self, intent: Intent, answer: Answer) -> None:
        """Keep the final answer. Where that cannot be done it is told all the same, and asked for again next time."""
        try:
            self.store.settle(name=intent.name, key=intent.key, answer=answer)
        except IntentsUnavailable:
            logger.warning("The answer to %r is not kept", intent.name, exc_info=True)

    def loosen(self, intent: Intent) -> bool:
        """Let the next call bring another request; say whether nobody else can have done something meanwhile."""
        try:
            return self.store.loosen(name=intent.name, key=intent.key)
        except IntentsUnavailable:
            logger.warning("That %r is free is not kept", intent.name, exc_info=True)
            return False

    def guard(self, *, effect: bool) -> Guard:
        """Return a guard; the server honours keys, so that an ambiguous send is repeated under its key."""
        name = urlsplit(self.base_url).netloc or "the server"
        return Guard(name=name, keyed=True, policy=self.policy, effect=effect, clock=self.clock)

    def url(self, path: str) -> str:
        """Return the whole address, at the server and nowhere else: credentials go with it.

        Raises:
            Misuse: the path leads to another server.
        """
        url = urljoin(self.base_url, path)
        if urlsplit(url)[:2] != urlsplit(self.base_url)[:2]:
            raise Misuse(f"{path!r} is not an address at {self.base_url}.")
        return url


def frozen(
    method: str, path: str, *, json_body: Any, content: bytes | None, content_type: str
) -> Request:
    """Return the request as it will be sent each time. Raises: Misuse, ValueError."""
    if content is not None and json_body is not None:
        raise Misuse("Give a request json or content, not both.")
    if content is None:
        content = json.dumps(
            json_body, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    return Request(method.upper(), path, content, content_type)


def headers_of(request: Request, key: str) -> dict[str, str]:
    """Return what is sent beside the session's own headers."""
    return {
        "Idempotency-Key": key,
        "Content-Type": request.content_type,
        "Accept": "application/json, application/problem+json",
    }


def monitor_of(answer: Answer) -> str:
    """Return where the status monitor is. Raises: Misuse, where the answer promises nothing."""
    location = answer.headers.get("location", "")
    if answer.status != 202 or not location:
        raise Misuse("Only a 202 with a Location can be followed.")
    return location


@contextmanager
def looking(url: str) -> Iterator[None]:
    """Tell a look that was not answered as what it is: it says nothing of the work, which goes on.

    Raises:
        StillOpen: the monitor cannot be asked, or its answer cannot be read.
    """
    try:
        yield
    except (CallFailed, CallUnknown) as error:
        raise StillOpen(
            f"{url} cannot be read now, and the work goes on: {error.detail}",
            intent="",
            code=error.code,
            retry_after=getattr(error, "retry_after", None),
            report=error.report,
        ) from error


def readable(seen: object) -> Answer:
    """Return a monitor's answer, if it says how the operation stands.

    Raises:
        CallRejected: the monitor does not show it, or not any more; the code says why.
    """
    if not isinstance(seen, Answer):
        raise CallUnknown("The status monitor gave no answer.")
    if not seen.ok:
        code = seen.code or f"http-{seen.status}"
        raise CallRejected(str(seen.problem.get("detail", "")), code=code)
    return seen
