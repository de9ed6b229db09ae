"""One request by the host's own HTTP library: `requests`, httpx or httpx2. Nothing is retried here.

Libraries are told by their packages, so that none is imported.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from idempotency.client.answer import WITHOUT_BODY, Answer
from idempotency.exceptions import Misuse
from idempotency.resilience.signs import package_of

Send = Callable[..., Any]
"""Takes method, url, headers, body and timeout; returns the library's response."""
AsyncSend = Callable[..., Awaitable[Any]]


class OneProcess:
    """The process in which a client has sent: a fork shares its connections, where one reads the other's answer."""

    def __init__(self) -> None:
        self._pid: int | None = None

    def require(self) -> None:
        """Refuse to send in a second process. Raises: Misuse."""
        if self._pid not in (None, os.getpid()):
            raise Misuse(
                "This client has sent before the process was forked, and shares its connections: an answer could be "
                "another request's. Make a client, and what it sends with, in each process."
            )
        self._pid = os.getpid()


def sender(http: Any) -> Send:
    """Return how a `requests.Session`, or a client of httpx or httpx2, sends.

    Raises:
        Misuse: it is something else, or retries by itself.
    """
    packages = {package_of(kind) for kind in type(http).__mro__}
    if "requests" in packages:
        _refuse_retries(http)
        return _by_requests(http)
    if "httpx2" in packages and not hasattr(http, "aclose"):
        return _by_httpx(http)
    raise Misuse(f"A requests.Session or an httpx client is wanted, not {type(http).__name__}.")


def async_sender(http: Any) -> AsyncSend:
    """Return how an `AsyncClient` of httpx or httpx2 sends. Raises: Misuse, for anything else."""
    packages = {package_of(kind) for kind in type(http).__mro__}
    if "httpx2" not in packages or not hasattr(http, "aclose"):
        raise Misuse(f"An AsyncClient of httpx is wanted, not {type(http).__name__}.")
    # Calling it only makes the coroutine.
    return _by_httpx(http)


def answer_of(response: Any) -> Answer:
    """Return a library's response as an answer."""
    headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
    return Answer(int(response.status_code), headers, response.content)


def _by_requests(session: Any) -> Send:
    def send(
        method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Any:
        response = session.request(
            method, url, headers=headers, data=body, timeout=timeout, allow_redirects=False
        )
        _require_whole_head(response)
        return response

    return send


def _require_whole_head(response: Any) -> None:
    """Refuse an answer that breaks off in its head, which Python's `http.client` takes for the end of the head.

    Raises: EOFError.
    """
    says = {"content-length", "transfer-encoding"} & {name.lower() for name in response.headers}
    if not (response.content or says or response.status_code in WITHOUT_BODY):
        raise EOFError("The answer has no body, and does not say so: it broke off.")


def _by_httpx(client: Any) -> Send:
    def send(
        method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Any:
        return client.request(
            method, url, headers=headers, content=body, timeout=timeout, follow_redirects=False
        )

    return send


def _refuse_retries(session: Any) -> None:
    for prefix, adapter in session.adapters.items():
        retries = getattr(adapter, "max_retries", None)
        if getattr(retries, "total", 0) or getattr(retries, "status", 0):
            raise Misuse(
                f"The session retries by itself at {prefix}: one layer retries, and this client is it."
            )
