"""What leaves for Stripe and what comes back: our bytes out, and nothing taken for Stripe's word that is not.

The official client builds the headers and reads the answers; between the two, this makes the one request.
"""

import json
import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import quote_plus

import httpx2
import stripe

from idempotency.resilience import register_error
from idempotency.types import Outcome, OutsideRequest

# It would write an id into the home directory, and time our calls for Stripe.
stripe.enable_telemetry = False
# It would log whole bodies and Stripe's messages, which repeat what was sent; our guard's events tell what happened.
logging.getLogger("stripe").addFilter(lambda record: record.levelno >= logging.WARNING)

_BODY: ContextVar[bytes | None] = ContextVar("stripe_body", default=None)


class NotStripesAnswer(Exception):
    """Something between us and Stripe answered: whether Stripe has executed the request is not known."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"HTTP {response.status_code} by something in between")


class BrokenAnswer(Exception):
    """Stripe answered, and not all of it can be read."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"HTTP {response.status_code} with a body that is no JSON")


register_error(NotStripesAnswer, reason="not-the-gateway", outcome=Outcome.AMBIGUOUS)
register_error(BrokenAnswer, reason="broken-answer", outcome=Outcome.AMBIGUOUS)


@contextmanager
def sending(request: OutsideRequest) -> Generator[None, None, None]:
    """Make the request that is made here carry the frozen payload."""
    token = _BODY.set(body_of(request))
    try:
        yield
    finally:
        _BODY.reset(token)


def body_of(request: OutsideRequest) -> bytes:
    """Return the wire body: see Note [The same bytes]."""
    params = json.loads(request.payload)
    metadata = {**params.get("metadata", {}), "idempotency_key": request.downstream_key}
    pairs = _flat({**params, "metadata": metadata})
    return "&".join(f"{name}={quote_plus(text)}" for name, text in pairs).encode()


def _flat(params: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        key = f"{within}[{quote_plus(name)}]" if within else quote_plus(name)
        match value:
            case Mapping():
                yield from _flat(value, key)
            case list():
                yield from _flat({str(number): item for number, item in enumerate(value)}, key)
            case bool():
                yield key, str(value).lower()
            case _:
                yield key, str(value)


class Wire(stripe.HTTPClient):
    """The official client's HTTP client, on ours.

    Raises, in `request`: what httpx2 raises; NotStripesAnswer; BrokenAnswer.
    """

    name = "httpx2"

    def __init__(self, http: httpx2.Client) -> None:
        super().__init__()
        self._http = http

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: Any = None,
        *,
        _usage: list[str] | None = None,
    ) -> tuple[str, int, Mapping[str, str]]:
        # What the official client made of no parameters is not sent: a request with an effect has a frozen body.
        body = _BODY.get() if method == "post" else None
        response = self._http.request(method.upper(), url, headers=headers, content=body)
        # Stripe marks each of its answers; a proxy, a firewall or a captive portal does not know how.
        if "Request-Id" not in response.headers:
            raise NotStripesAnswer(response)
        try:
            text = response.content.decode()
            json.loads(text)
        except ValueError:
            # Without its cause, which would carry the body along.
            raise BrokenAnswer(response) from None
        return text, response.status_code, response.headers

    def close(self) -> None:
        self._http.close()
