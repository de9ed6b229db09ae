"""Admitting a request: what is checked before its endpoint begins, and never remembered."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from payments.simulator.api import errors
from payments.simulator.api.routes import Route, find_route
from payments.simulator.config import Config
from payments.simulator.faults.delivery import WHOLE
from payments.simulator.faults.queue import Fault
from payments.simulator.record import books, keys
from payments.simulator.record.late import Postponed
from payments.simulator.wire.forms import UnreadableForm, decode
from payments.simulator.wire.http import Json, Request

_MAX_KEY = 255
_KEY_PREFIXES = ("sk_test_", "rk_test_")


@dataclass(frozen=True)
class Received:
    """A request that is written down, and the fault that strikes it.

    `unreadable` is why its parameters could not be read; `late` is its number when it is carried
    out after its answer was lost.
    """

    request: Request
    params: Json
    seq: int
    epoch: int
    request_id: str
    fault: Fault = WHOLE
    unreadable: UnreadableForm | None = None
    late: int | None = None


def params_of(request: Request) -> Json:
    """Read a request's parameters, from the query of a read, else from the body.

    Raises:
        UnreadableForm: they cannot be read.
    """
    if request.method == "GET":
        return decode(request.query)
    try:
        return decode(request.body.decode())
    except UnicodeDecodeError as error:
        raise UnreadableForm("The body is not UTF-8.") from error


def admit(received: Received) -> tuple[Route, tuple[str, ...]]:
    """Check what is checked before an endpoint begins; return its route and the ids in its path.

    Raises:
        ApiError: unknown path, no API key, or unreadable parameters.
    """
    request = received.request
    found = find_route(request.method, request.path)
    if found is None:
        raise errors.no_such_route(request.method, request.path)
    if found[0].authenticated and received.late is None:
        _authenticate(request)
    if received.unreadable is not None:
        raise errors.invalid_parameter(str(received.unreadable), param=received.unreadable.param)
    return found


def _authenticate(request: Request) -> None:
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        credentials = _user_of(credentials)
    if not credentials:
        raise errors.unauthorized("You did not provide an API key.")
    if not credentials.startswith(_KEY_PREFIXES):
        raise errors.unauthorized(f"Invalid API Key provided: {credentials[:8]}")


def _user_of(credentials: str) -> str:
    try:
        return base64.b64decode(credentials).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def honoured_key(request: Request, config: Config) -> str | None:
    """Return the key that counts, or None: Stripe ignores keys of reads.

    Raises:
        ApiError: the key is too long.
    """
    key = request.idempotency_key
    if not key or request.method == "GET" or not config.idempotency:
        return None
    if len(key) > _MAX_KEY:
        raise errors.invalid_parameter(
            f"Idempotency keys can be up to {_MAX_KEY} characters long.", param=None
        )
    return key


def fingerprint_of(received: Received) -> str:
    """Return the digest by which a key's requests are told apart."""
    return keys.fingerprint(path=received.request.path, params=received.params)


def received_late(row: Postponed, epoch: int) -> Received:
    """Return a postponed request as it was received, to be carried out."""
    params = params_of(row.request)
    return Received(row.request, params, 0, epoch, books.new_id("req"), late=row.seq)
