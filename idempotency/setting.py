"""The kinds of settings: each a typed property that reads a raw value, and says what is wrong with it.

Live: a change counts from the next time that the value is asked for, whoever makes it.
"""

import hashlib
import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar, overload

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

T = TypeVar("T")
_UNSET = object()


class Settings:
    """The settings of one dict, each a property of the class."""

    dict_name: ClassVar[str]
    """What the host calls their dict."""

    @property
    def raw(self) -> Mapping[str, Any]:
        """Return what the host wrote, unread.

        Raises: ImproperlyConfigured, where that is no dict.
        """
        raw = getattr(settings, self.dict_name, {})
        if not isinstance(raw, Mapping):
            raise ImproperlyConfigured(
                f"{self.dict_name} must be a dict, not {type(raw).__name__}."
            )
        return raw

    @classmethod
    def known(cls) -> "tuple[Setting[Any], ...]":
        """Return every setting there is, in the order in which they are written."""
        return tuple(setting for setting in vars(cls).values() if isinstance(setting, Setting))

    def unknown(self) -> list[str]:
        """Return the names in the dict that mean nothing here, e.g. a misspelt one."""
        known = {setting.name for setting in self.known()}
        return sorted(str(name) for name in self.raw if name not in known)


class Setting(Generic[T]):
    """One setting: its name, kind, default and meaning. A subclass says how a raw value is read."""

    kind = "value"

    def __init__(self, default: T, doc: str) -> None:
        self.default = default
        self.doc = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Setting[T]": ...

    @overload
    def __get__(self, instance: Settings, owner: type) -> T: ...

    def __get__(self, instance: Settings | None, owner: type) -> "Setting[T] | T":
        if instance is None:
            return self
        raw = instance.raw.get(self.name, _UNSET)
        if raw is _UNSET:
            return self.fallback()
        try:
            return self.read(raw)
        except ValueError as error:
            raise ImproperlyConfigured(f"{instance.dict_name}[{self.name!r}]: {error}.") from error

    def fallback(self) -> T:
        """Return the value where the host says nothing."""
        return self.default

    def read(self, raw: object) -> T:
        """Return the typed value. Raises: ValueError, saying what is wanted instead."""
        raise NotImplementedError


class Seconds(Setting[float]):
    """A duration: a finite number of seconds."""

    kind = "seconds"

    def __init__(self, default: float, doc: str, *, zero: bool = False) -> None:
        super().__init__(float(default), doc)
        self.zero = zero

    def read(self, raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
            raise ValueError(f"a number of seconds is wanted, not {raw!r}")
        if raw < 0 or (raw == 0 and not self.zero):
            raise ValueError(f"{'no less' if self.zero else 'more'} than 0 seconds is wanted")
        return float(raw)


class Number(Setting[float]):
    """A finite number within bounds, both included."""

    kind = "number"

    def __init__(
        self, default: float, doc: str, *, least: float = 0.0, most: float = math.inf
    ) -> None:
        super().__init__(float(default), doc)
        self.least = least
        self.most = most

    def read(self, raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
            raise ValueError(f"a number is wanted, not {raw!r}")
        if not self.least <= raw <= self.most:
            raise ValueError(f"a number from {self.least} to {self.most} is wanted, not {raw}")
        return float(raw)


class Count(Setting[int]):
    """A whole number within bounds, both included."""

    kind = "count"

    def __init__(self, default: int, doc: str, *, least: int = 1, most: int = 2**31 - 1) -> None:
        super().__init__(default, doc)
        self.least = least
        self.most = most

    def read(self, raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise ValueError(f"a whole number is wanted, not {raw!r}")
        if not self.least <= raw <= self.most:
            raise ValueError(f"a number from {self.least} to {self.most} is wanted, not {raw}")
        return raw


class Text(Setting[str]):
    """A string, which may be empty only where the default is."""

    kind = "text"

    def read(self, raw: object) -> str:
        if not isinstance(raw, str) or (self.default and not raw):
            raise ValueError(f"a string is wanted, not {raw!r}")
        return raw


class Flag(Setting[bool]):
    """Yes or no."""

    kind = "flag"

    def read(self, raw: object) -> bool:
        if not isinstance(raw, bool):
            raise ValueError(f"True or False is wanted, not {raw!r}")
        return raw


class Names(Setting[tuple[str, ...]]):
    """A list of names."""

    kind = "names"

    def read(self, raw: object) -> tuple[str, ...]:
        if isinstance(raw, str) or not isinstance(raw, Sequence):
            raise ValueError(f"a list of strings is wanted, not {raw!r}")
        if not all(isinstance(name, str) and name for name in raw):
            raise ValueError("every name must be a string with something in it")
        return tuple(raw)


class Hook(Setting[Callable[[Any], Any] | None]):
    """A callable that gets the request, given itself or by its dotted path."""

    kind = "hook"

    def __init__(self, default: str | None, doc: str) -> None:
        super().__init__(None, doc)
        self.path = default

    def fallback(self) -> Callable[[Any], Any] | None:
        return None if self.path is None else self.read(self.path)

    def read(self, raw: object) -> Callable[[Any], Any] | None:
        if raw is None:
            return self.fallback()
        if isinstance(raw, str):
            try:
                raw = import_string(raw)
            except ImportError as error:
                raise ValueError(str(error)) from error
        if not callable(raw):
            raise ValueError(f"a callable or its dotted path is wanted, not {raw!r}")
        return raw


class Secrets(Setting[Mapping[str, bytes]]):
    """Secrets by name, the current one first."""

    kind = "secrets"

    def fallback(self) -> Mapping[str, bytes]:
        return _secrets_of_django((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))

    def read(self, raw: object) -> Mapping[str, bytes]:
        if not isinstance(raw, Mapping) or not raw:
            raise ValueError("a mapping of at least one name to its secret is wanted")
        for name, secret in raw.items():
            # Never show a secret, so only the name is repeated.
            if not isinstance(name, str) or not 1 <= len(name) <= 32:
                raise ValueError("a secret's name must be a string of 1 to 32 characters")
            if not isinstance(secret, str | bytes) or not secret:
                raise ValueError(f"the secret {name!r} must be a string or bytes, not empty")
        return {name: _bytes(secret) for name, secret in raw.items()}


@lru_cache(maxsize=8)
def _secrets_of_django(keys: tuple[str | bytes, ...]) -> Mapping[str, bytes]:
    # Derived, never the key itself; named by a digest, so that a row tells which key made it.
    derived = [hmac.digest(_bytes(key), b"idempotency.fingerprint", "sha256") for key in keys]
    return {"django-" + hashlib.sha256(secret).hexdigest()[:8]: secret for secret in derived}


def _bytes(secret: str | bytes) -> bytes:
    return secret if isinstance(secret, bytes) else secret.encode()
