"""What is stored of answers and calls, under the host's own keys where it has set any: encrypted here only.

# Note [Sealing]
Sealed are a key's stored body, a step's payload and result, and the input and result of deferred work. Readable stay
what rows are found by and what people see in lists: scope, key, operation, resource, reference, summary, headers.
What was stored before there were keys is read as it is. A new key goes to the front of ENCRYPTION_KEYS; an old one is
needed for as long as rows from its time are kept (KEY_TTL, and longer for keys that are not settled).
"""

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

from idempotency.conf import conf
from idempotency.exceptions import Unreadable

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_MARK = b"\x00sealed\x00"
"""Before the token in bytes: no text and no JSON begins so."""
_PLAIN_MARK = b"\x00plain\x00"
"""Before bytes that are not sealed and only look so."""
_MEMBER = "~sealed"
"""The one member of a JSON object that holds a token."""
_PLAIN = "~plain"
"""Beside it, what is not sealed and only looks so."""


def seal(plain: bytes) -> bytes:
    """Return the bytes as they are stored."""
    box = _box()
    if box:
        return _MARK + box.encrypt(plain)
    return _PLAIN_MARK + plain if plain.startswith((_MARK, _PLAIN_MARK)) else plain


def unseal(stored: bytes | memoryview) -> bytes:
    """Return the bytes that were stored.

    Raises: Unreadable, where no key of the settings opens them.
    """
    raw = bytes(stored)
    return (
        _open(raw.removeprefix(_MARK)) if raw.startswith(_MARK) else raw.removeprefix(_PLAIN_MARK)
    )


def seal_json(text: str) -> str:
    """Return JSON text as it is stored: JSON too."""
    box = _box()
    if box:
        return f'{{"{_MEMBER}": "{box.encrypt(text.encode()).decode()}"}}'
    # Whoever sends an object that looks sealed gets that very object again.
    return f'{{"{_MEMBER}": "", "{_PLAIN}": {text}}}' if _looks_sealed(text) else text


def unseal_json(value: Any) -> Any:
    """Return the value that was stored, out of parsed JSON.

    Raises: Unreadable, where no key of the settings opens it.
    """
    if not isinstance(value, dict) or not value.keys() <= {_MEMBER, _PLAIN} or _MEMBER not in value:
        return value
    return value[_PLAIN] if _PLAIN in value else json.loads(_open(str(value[_MEMBER]).encode()))


def _looks_sealed(text: str) -> bool:
    # Nearly none does, and few have the letters.
    value = json.loads(text) if _MEMBER in text else None
    return isinstance(value, dict) and _MEMBER in value


def check_keys() -> None:
    """Raise ImproperlyConfigured or ImportError where ENCRYPTION_KEYS cannot be used."""
    _box()


def _box() -> "MultiFernet | None":
    keys = conf.ENCRYPTION_KEYS
    return _made_of(keys) if keys else None


def _open(token: bytes) -> bytes:
    box = _box()
    if box is not None:
        from cryptography.fernet import InvalidToken

        try:
            return box.decrypt(token)
        except InvalidToken:
            pass
    raise Unreadable(
        "None of IDEMPOTENCY['ENCRYPTION_KEYS'] opens what is stored here.",
        retry_after=_RETRY_AFTER,
    )


_RETRY_AFTER = 60.0
"""Seconds until another process, or this one with other settings, may have the key."""


@lru_cache(maxsize=8)
def _made_of(keys: tuple[str, ...]) -> "MultiFernet":
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise ImportError(
            "encryption needs the package cryptography: install the extra `encryption`"
        ) from error
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as error:
        # The error says what is wrong with it, and never the key.
        raise ImproperlyConfigured(
            f"ENCRYPTION_KEYS holds what is no Fernet key: {error}"
        ) from error
