"""Read typed values from environment variables; a malformed one is refused by its name."""

import math
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off", ""})


def text(name: str, default: str = "") -> str:
    """Return the variable, or the default where it is missing or empty."""
    return os.environ.get(name, "").strip() or default


def words(name: str, default: str = "") -> list[str]:
    """Return the comma-separated parts of the variable."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def flag(name: str, *, default: bool = False) -> bool:
    """Return the variable as yes or no. Raises: ImproperlyConfigured."""
    raw = os.environ.get(name)
    return default if raw is None else _read(name, raw, _flag)


def integer(name: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
    """Return the variable as a whole number within bounds. Raises: ImproperlyConfigured."""
    raw = text(name)
    value = default if not raw else _read(name, raw, int)
    if not least <= value <= most:
        raise ImproperlyConfigured(f"{name}={value} is not a number from {least} to {most}.")
    return value


def port(name: str, default: int) -> int:
    """Return the variable as a TCP port. Raises: ImproperlyConfigured."""
    return integer(name, default, least=1, most=65535)


def overrides(prefix: str, defaults: Mapping[str, object]) -> dict[str, Any]:
    """Return what the variables `<prefix>_<NAME>` say, by NAME, typed as the default of that name.

    A variable of this prefix that names no setting is refused: it is a typing mistake.

    Raises:
        ImproperlyConfigured: a value is malformed, or there is no such setting.
    """
    found: dict[str, Any] = {}
    for variable, raw in sorted(os.environ.items()):
        name = variable.removeprefix(f"{prefix}_")
        if name == variable or variable in NOT_SETTINGS:
            continue
        if name not in defaults:
            raise ImproperlyConfigured(f"{variable}: there is no setting {prefix}[{name!r}].")
        found[name] = _read(variable, raw.strip(), _reader(defaults[name]))
    return found


# A switch of the tests (see `idempotency.testing`), not a setting.
NOT_SETTINGS = frozenset({"IDEMPOTENCY_FAULT_POINT"})


def database(url: str) -> dict[str, Any]:
    """Return Django's connection settings for `postgresql://user:password@host:port/name?option=…`.

    Raises:
        ImproperlyConfigured: it is no PostgreSQL address.
    """
    try:
        parts = urlsplit(url)
        number = parts.port
    except ValueError as error:
        raise ImproperlyConfigured(f"DATABASE_URL: {error}.") from error
    if parts.scheme not in {"postgresql", "postgres"}:
        # The ledger rests on row locks and advisory locks: no other database will do.
        raise ImproperlyConfigured(
            f"DATABASE_URL must be a postgresql:// address, not {parts.scheme or 'empty'}://."
        )
    return {
        "ENGINE": "project.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(number or ""),
        # Blank ones count: "?options=" sends no time limits at connecting.
        "OPTIONS": dict(parse_qsl(parts.query, keep_blank_values=True)),
    }


def _read(name: str, raw: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(raw)
    except ValueError as error:
        kind = KINDS.get(read, "value")
        raise ImproperlyConfigured(f"{name}={raw!r} is not a {kind}.") from error


def _reader(default: object) -> Callable[[str], Any]:
    if isinstance(default, bool):
        return _flag
    if isinstance(default, int):
        return int
    if isinstance(default, float):
        return _number
    if isinstance(default, list | tuple):
        return _words
    return str


def _flag(raw: str) -> bool:
    word = raw.strip().lower()
    if word not in TRUE | FALSE:
        raise ValueError(raw)
    return word in TRUE


def _number(raw: str) -> float:
    value = float(raw)
    if not math.isfinite(value):
        raise ValueError(raw)
    return value


def _words(raw: str) -> list[str]:
    return [word.strip() for word in raw.split(",") if word.strip()]


KINDS: dict[Callable[[str], Any], str] = {
    int: "whole number",
    _number: "number",
    _flag: "yes or no (1, 0, true, false)",
}
