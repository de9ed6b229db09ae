"""The settings: one typed property each, read live from the one dict `settings.IDEMPOTENCY`.

    from idempotency.conf import conf

    conf.LEASE  # 45.0

`SETTINGS` is the same list as data: the checks and the reference are made from it, not beside it.
A value of the wrong kind raises `ImproperlyConfigured` when it is read; a system check reports it
before that.
"""

import hashlib
import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar, overload

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

T = TypeVar("T")


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
    def __get__(self, instance: "Conf", owner: type) -> T: ...

    def __get__(self, instance: "Conf | None", owner: type) -> "Setting[T] | T":
        if instance is None:
            return self
        raw = instance.raw
        if self.name not in raw:
            return self.fallback()
        try:
            return self.read(raw[self.name])
        except ValueError as error:
            raise ImproperlyConfigured(f"IDEMPOTENCY[{self.name!r}]: {error}.") from error

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


class Conf:
    """The settings, live. Durations are seconds as float."""

    REQUEST_BUDGET = Seconds(12, "Time that one request may take, its answer included.")
    LEASE = Seconds(
        45, "Time from the first outside call after which a silent key becomes unknown."
    )
    RESULT_TTL = Seconds(259_200, "Time from settlement for which the answer is kept and replayed.")
    KEY_TTL = Seconds(2_592_000, "Time from settlement after which a key counts as new.")
    MISMATCH_STATUS = Count(
        422, "Status of the answer to a key reused for another request.", least=400, most=499
    )
    MAX_RESPONSE_BYTES = Count(
        1_048_576, "The longest answer that is kept; a longer one is not replayed."
    )
    RECONCILE_EVERY = Seconds(5, "Pause between two sweeps for unknown keys and lapsed leases.")
    WAKE_EVERY = Seconds(5, "Pause between two sweeps for deferred work that is due.")
    PURGE_EVERY = Seconds(300, "Pause between two purges of expired answers and keys.")
    OPERATION_MAX_ATTEMPTS = Count(
        3, "Runs of a deferred operation in one cycle, the first included."
    )
    OPERATION_TIME_LIMIT = Seconds(30, "Time that one run of a deferred operation may take.")
    RETRY_BASE = Seconds(
        0.1, "First pause before a deferred operation runs again; doubled each time."
    )
    RETRY_CAP = Seconds(5, "Longest of these pauses.")
    WAIT = Seconds(
        0, "Time that a repeat waits for a first request in progress; 0 answers at once.", zero=True
    )
    SCOPE = Hook(
        "idempotency.http.scope.tenant_and_user",
        "Whose key it is: gets the request, returns a string that stays the same for one caller.",
    )
    TENANT = Hook(
        None, "Which tenant the caller belongs to: gets the request, returns its id or None."
    )
    FINGERPRINT_SECRETS = Secrets(
        {},
        "Secrets by name, the current first; by default made of SECRET_KEY and its fallbacks.",
    )
    ENCRYPTION_KEYS = Names(
        (),
        "Fernet keys to keep answers and payloads under, the current first; none: readable.",
    )
    FINGERPRINT_HEADERS = Names(
        (), "Request headers that are part of what makes two requests equal."
    )
    DATABASE = Text(
        "default", "Alias of the database that holds the ledger, and what commits with it."
    )
    PROBLEM_BASE = Text("/problems/", "Address under which each problem code has its page.")
    PROBLEMS = Names(
        (), "Dotted paths of mappings from further problem codes to their description."
    )
    STORED_HEADERS = Names(
        (
            "Location",
            "Content-Location",
            "Content-Language",
            "ETag",
            "Last-Modified",
            "Link",
            "Retry-After",
        ),
        "Response headers that are kept and replayed; all others are dropped.",
    )
    DEADLINE_HEADER = Text(
        "", "Request header by which a caller may shorten the budget, in seconds; empty: none."
    )
    PURGE_BATCH = Count(500, "Keys that one purge statement touches.")
    RECONCILE_BATCH = Count(50, "Keys that one reconciliation takes.")
    LOOKUP_BACKOFF_CAP = Seconds(300, "Longest pause between two look-ups of the same unknown key.")
    NEEDS_PERSON_AFTER = Seconds(
        3_600, "Time for which a key may be unknown before a person is asked."
    )
    NEEDS_PERSON_TRIES = Count(20, "Look-ups without a verdict before a person is asked.")
    RECORD_REPLAYS = Flag(
        False,
        "Whether the console's timeline shows replays: one a minute of a key is written, after its answer is sent.",
    )
    ADMIN_REGISTER = Flag(True, "Whether the console registers itself with Django's admin site.")
    ADMIN_BASE = Text(
        "",
        "Dotted path of the ModelAdmin class under the console; empty: that of the theme in use.",
    )
    ADMIN_BREAKERS = Hook(
        None, "Circuit breakers that the console shows: gets the request, returns them."
    )
    ADMIN_SWITCHES = Hook(
        None, "Read-only switches that console and metrics show: gets the request, returns them."
    )
    ADMIN_KNOWS = Hook(
        None,
        "What the host knows of the keys on one page: gets them, returns by id of a key a `types.Known`.",
    )
    REDACT = Names(
        ("account_number", "birth_date", "date_of_birth", "iban", "passport", "ssn", "tax_id"),
        "Fields of stored bodies and evidence that nobody is shown: names, or paths such as `customer.*.phone`.",
    )
    TRACE_URL = Text("", "Address of a trace, with `{trace_id}` in it; empty: no link.")
    RUNBOOK = Text("", "Address of the runbook that the console links; empty: no link.")

    @property
    def raw(self) -> Mapping[str, Any]:
        """Return what the host wrote, unread."""
        raw = getattr(settings, "IDEMPOTENCY", {})
        if not isinstance(raw, Mapping):
            raise ImproperlyConfigured(f"IDEMPOTENCY must be a dict, not {type(raw).__name__}.")
        return raw

    def unknown(self) -> list[str]:
        """Return the names in the dict that mean nothing here, e.g. a misspelt one."""
        known = {setting.name for setting in SETTINGS}
        return sorted(str(name) for name in self.raw if name not in known)


SETTINGS: tuple[Setting[Any], ...] = tuple(
    setting for setting in vars(Conf).values() if isinstance(setting, Setting)
)
conf = Conf()


@lru_cache(maxsize=8)
def _secrets_of_django(keys: tuple[str | bytes, ...]) -> Mapping[str, bytes]:
    # Derived, never the key itself; named by a digest, so that a row tells which key made it.
    derived = [hmac.digest(_bytes(key), b"idempotency.fingerprint", "sha256") for key in keys]
    return {"django-" + hashlib.sha256(secret).hexdigest()[:8]: secret for secret in derived}


def _bytes(secret: str | bytes) -> bytes:
    return secret if isinstance(secret, bytes) else secret.encode()
