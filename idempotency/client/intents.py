"""What is to be done, and under which key: where it is written down before anything is sent."""

import json
import math
import time
import uuid
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

from idempotency.client.answer import Answer
from idempotency.client.errors import IntentChanged, NotRenewable
from idempotency.exceptions import Misuse


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, frozen at the first send: every further one sends these bytes."""

    method: str
    path: str
    body: bytes
    content_type: str

    def is_same_as(self, other: "Request") -> bool:
        """Whether the server takes both for one request, surely; the order of JSON's members does not matter."""
        return (self.method, self.path, self.content_type) == (
            other.method,
            other.path,
            other.content_type,
        ) and (self.body == other.body or _data(self) == _data(other) is not None)


def _data(request: Request) -> str | None:
    """Return what a body of JSON says, None of any other; a number with a fraction is compared as it is written."""
    try:
        return json.dumps(json.loads(request.body, parse_float=_unlike_a_text), sort_keys=True)
    except (ValueError, RecursionError):
        return None


def _unlike_a_text(number: str) -> tuple[float, str]:
    # With NaN, which JSON cannot hold: no body says the same in another way.
    return math.nan, number


@dataclass(frozen=True, slots=True)
class Intent:
    """One operation, from its first send to its final answer."""

    name: str
    key: str
    request: Request
    begun_at: float
    """Seconds since the epoch: when the first send was about to leave."""
    fresh: bool = False
    """Whether certainly nothing was sent under the key before."""
    answer: Answer | None = None


class Intents(Protocol):
    """Where intents are kept. Every method is atomic, and durable once it has returned.

    Each raises `IntentsUnavailable` where the store cannot be read or written.
    """

    def begin(self, *, name: str, request: Request) -> Intent:
        """Return the intent of that name; with a new key only where there is none yet.

        Raises:
            IntentChanged: it was begun with another request, and may have happened.
        """

    def settle(self, *, name: str, key: str, answer: Answer) -> None:
        """Keep the final answer; a later call gets it without asking the server. The first one stays."""

    def loosen(self, *, name: str, key: str) -> bool:
        """Let the next call bring another request, under the same key: nothing has happened under it.

        Asked by the call whose intent was fresh. Returns: whether that was done; not where another call has got the
        intent meanwhile, whose sends may have done something.
        """

    def renew(self, *, name: str) -> None:
        """Give the intent a new key: to try again what was refused for good, e.g. with another card.

        Raises:
            NotRenewable: it is not over, or the answer does not say that a new key is safe.
        """

    def unanswered(self) -> list[Intent]:
        """Return what was begun and has no final answer, the oldest first; each to be sent by one more call."""


class MemoryIntents:
    """Intents of one process, lost with it: for tests, and for what no restart has to finish."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._intents: dict[str, Intent] = {}
        self._loose: set[str] = set()
        # What more than one call has got: a `loosen` by one of them says nothing of the others' sends.
        self._shared: set[str] = set()

    def begin(self, *, name: str, request: Request) -> Intent:
        require_name(name)
        with self._lock:
            known = self._intents.get(name)
            if known is None:
                self._intents[name] = Intent(name, new_key(), request, time.time())
                return replace(self._intents[name], fresh=True)
            if name in self._loose:
                self._loose.discard(name)
                self._intents[name] = replace(known, request=request, begun_at=time.time())
                return replace(self._intents[name], fresh=True)
            require_same(known, request)
            self._shared.add(name)
            return known

    def settle(self, *, name: str, key: str, answer: Answer) -> None:
        with self._lock:
            known = self._intents.get(name)
            if known is not None and known.key == key and known.answer is None:
                self._intents[name] = replace(known, answer=replace(answer, remembered=True))
                self._loose.discard(name)

    def loosen(self, *, name: str, key: str) -> bool:
        with self._lock:
            known = self._intents.get(name)
            if known is None or known.key != key or known.answer or name in self._shared:
                return False
            self._loose.add(name)
            return True

    def renew(self, *, name: str) -> None:
        with self._lock:
            known = self._intents.get(name)
            require_renewable(name, known.answer if known else None)
            del self._intents[name]
            self._shared.discard(name)

    def unanswered(self) -> list[Intent]:
        with self._lock:
            found = [
                intent
                for name, intent in self._intents.items()
                if intent.answer is None and name not in self._loose
            ]
            self._shared.update(intent.name for intent in found)
            return found


# -- what every store does alike ---------------------------------------------------------------------------------------


def new_key() -> str:
    """Return a key that nobody can guess: a UUID version 4."""
    return str(uuid.uuid4())


def require_name(name: str) -> None:
    """Refuse a name that says nothing. Raises: Misuse."""
    if not name.strip():
        raise Misuse(
            'An intent needs a name that a restart would find again, e.g. "charge order 881".'
        )


def require_same(known: Intent, request: Request) -> None:
    """Refuse another request under a name that is taken. Raises: IntentChanged."""
    if not known.request.is_same_as(request):
        raise IntentChanged(
            f"The intent {known.name!r} was begun with another request, which may have been done. Give what is to be "
            "done now another name; to try again what was refused for good, call renew() first."
        )


def require_renewable(name: str, answer: Answer | None) -> None:
    """Refuse a new key unless the final answer says that it is safe. Raises: NotRenewable."""
    if answer is None:
        raise NotRenewable(f"The intent {name!r} has no final answer yet: it may have been done.")
    if answer.ok:
        raise NotRenewable(
            f"The intent {name!r} is done: what is to be done again is another intent."
        )
    if answer.problem.get("safe_new_key") is not True:
        raise NotRenewable(f"The answer to {name!r} does not say that a new key is safe.")
