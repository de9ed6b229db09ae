"""What an error can be recognised by, without importing the library that raised it.

Libraries are told by the top package of their classes' modules, so that this room needs none.
"""

import errno
import re
from collections.abc import Iterator
from typing import Any

from idempotency.resilience.retryafter import as_seconds, parse_retry_after, parse_retry_info

_SAME = {
    "httpx": "httpx2",
    "httpcore": "httpx2",
    "httpcore2": "httpx2",
    "valkey": "redis",
    "aiokafka": "kafka",
}
"""Packages that use another's names for the same things."""

_HTTP_CLIENTS = {"httpx2", "requests", "stripe", "urllib", "aiohttp"}

_SECRETS = re.compile(
    r"(?<=://)[^/@\s]+(?=@)"  # user and password in an address
    r"|(?<=\?)[^\s\"']+"  # a query
    r"|\b(?:sk|rk|pk|whsec)_\w+"  # Stripe's keys
    r"|(?i:(?<=bearer )|(?<=basic )|(?<=token ))\S+"
    r"|\b[0-9](?:[ -]?[0-9]){11,18}\b"  # what may be a card number
)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its stated causes, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def inner_of(error: BaseException) -> BaseException | None:
    """Return what a known wrapper wraps: its cause, or what was being handled when it was raised.

    Also where the context is suppressed: httpcore raises its errors again "from None".
    """
    return error.__cause__ or error.__context__


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE, found through wrappers like Django's by their causes, or None."""
    for each in chain(error):
        state = getattr(each, "sqlstate", None)
        if isinstance(state, str) and len(state) == 5:
            return state
    return None


def signs_of(met: object) -> Iterator[str]:
    """Yield what an error or a response is recognised by, the most telling first.

    First its own code (Stripe, gRPC, Kafka, SQLSTATE, errno), then the HTTP status, then its class
    and each base class by full name and by top package.
    """
    names = [(package_of(kind), kind) for kind in type(met).__mro__ if kind is not object]
    packages = {package for package, _ in names}
    yield from _codes(met, packages)
    status = http_status(met)
    if status is not None:
        yield f"http:{status}"
        yield f"http:{status // 100}xx"
    for package, kind in names:
        yield f"{kind.__module__}.{kind.__qualname__}"
        yield f"{package}.{kind.__name__}"


def package_of(kind: type) -> str:
    """Return the top package of a class, with look-alike packages under one name."""
    top = kind.__module__.partition(".")[0]
    return _SAME.get(top, top)


def _codes(met: object, packages: set[str]) -> Iterator[str]:
    if "stripe" in packages:
        yield f"stripe:{getattr(met, 'code', None)}"
        yield f"stripe:{type(met).__name__}"
    if "grpc" in packages:
        yield f"grpc:{_named(getattr(met, 'code', None))}"
    if "confluent_kafka" in packages and isinstance(met, Exception) and met.args:
        yield f"kafka:{_named(getattr(met.args[0], 'name', None))}"
    if "psycopg" in packages:
        state = getattr(met, "sqlstate", None)
        if state:
            yield from (f"sqlstate:{state}", f"sqlstate:{state[:2]}")
        elif getattr(met, "pgconn", None) is not None:
            # psycopg attaches it only to an error of a connection attempt.
            yield "psycopg:connecting"
    if isinstance(met, OSError) and met.errno is not None:
        yield f"errno:{errno.errorcode.get(met.errno, met.errno)}"


def _named(code: Any) -> str:
    """Return an enum member's name, a text, or what a method of that meaning returns."""
    value = code() if callable(code) else code
    return str(getattr(value, "name", value))


def http_status(met: object) -> int | None:
    """Return the status of a known HTTP library's response, or of the error that carries one."""
    if not _HTTP_CLIENTS & {package_of(kind) for kind in type(met).__mro__}:
        return None
    response = getattr(met, "response", None) if isinstance(met, Exception) else met
    for holder, name in (
        (response, "status_code"),  # httpx2, requests
        (met, "http_status"),  # stripe
        (met, "status"),  # aiohttp, urllib
    ):
        status = getattr(holder, name, None)
        if isinstance(status, int):
            return status
    return None


def retry_after(met: object, *, now: float) -> float | None:
    """Return the other side's word in seconds: `Retry-After`, gRPC's RetryInfo, or our own's.

    `now` is wall-clock time in seconds since the epoch.
    """
    own = as_seconds(getattr(met, "retry_after", None))
    if own is not None:
        return own
    response = getattr(met, "response", None) if isinstance(met, Exception) else met
    for holder in (response, met):
        items = getattr(getattr(holder, "headers", None), "items", None)
        if callable(items):
            lines = [str(value) for name, value in items() if name.lower() == "retry-after"]
            dates = [str(value) for name, value in items() if name.lower() == "date"]
            date = dates[0] if len(dates) == 1 else None
            return parse_retry_after(", ".join(lines), now=now, date=date) if lines else None
    return _grpc_retry_info(met)


def _grpc_retry_info(met: object) -> float | None:
    trailers = getattr(met, "trailing_metadata", None)
    for name, value in (trailers() or ()) if callable(trailers) else ():
        if name == "grpc-status-details-bin" and isinstance(value, bytes):
            return parse_retry_info(value)
    return None


def describe(error: BaseException) -> str:
    """Return class and message in one line of 200 characters at most, without what may be secret."""
    message = " ".join(_SECRETS.sub("***", str(error)).split())
    return f"{type(error).__qualname__}: {message}"[:200]
