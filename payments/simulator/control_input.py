"""Readers of what tests ask of the control routes; each names the field it cannot use."""

from __future__ import annotations

import json
import math
from urllib.parse import urlsplit

from payments.simulator.wire.http import Json


class BadControl(Exception):
    """A control request cannot be used: `field` says where, the message why."""

    def __init__(self, field: str, message: str) -> None:
        """Name the field and what is wrong with it."""
        super().__init__(f"{field}: {message}")
        self.field = field


def an_object(body: bytes) -> Json:
    """Read a JSON object; an empty body is an empty one."""
    try:
        content = json.loads(body or b"{}")
    except ValueError as error:
        raise BadControl("body", f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise BadControl("body", "must be a JSON object")
    return content


def only(asked: Json, *known: str, within: str = "") -> None:
    """Refuse a field that is not known here."""
    for name in asked:
        if name not in known:
            raise BadControl(within + name, f"unknown; known are {', '.join(known)}")


def a_flag(value: object, field: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise BadControl(field, "must be true or false")
    return value


def a_number(value: object, field: str) -> float:
    """Return a number of seconds, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadControl(field, "must be a number of seconds")
    if not math.isfinite(value) or value < 0:
        raise BadControl(field, "must be 0 or more")
    return float(value)


def a_whole_number(value: object, field: str, *, minimum: int) -> int:
    """Return a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadControl(field, "must be a whole number")
    if not minimum <= value < 2**63:
        raise BadControl(field, f"must be {minimum} or more")
    return value


def an_address(value: object, field: str) -> str:
    """Return an http or https address."""
    address = a_text(value, field)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadControl(field, "must be an http or https address")
    return address


def a_text(value: object, field: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise BadControl(field, "must be a text")
    return value
