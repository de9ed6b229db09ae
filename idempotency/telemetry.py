"""What happens here, told as events: code emits; listeners log, count and signal. Pure Python.

The catalogue is every `Event` in this file (`catalogue()`). It is published: a rename is breaking.
A field named in `LABELS` takes few values and may become a metric's label; any other field is a
measure, or a detail for people and logs, never a label.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, TypeVar

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """The root of the catalogue."""

    LABELS: ClassVar[tuple[str, ...]] = ()

    def labels(self) -> dict[str, str]:
        """Return the fields of few values as text, fit for a metric's labels."""
        return {name: str(getattr(self, name)) for name in self.LABELS}


# -- outside calls ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttemptEnded(Event):
    """One attempt of a guarded call came back, with or without an answer."""

    LABELS: ClassVar[tuple[str, ...]] = ("guard", "outcome", "reason")

    guard: str
    outcome: str
    """`success`, `rejected`, `fatal`, `transient` or `ambiguous`."""
    reason: str
    """The classifier's word, e.g. `read-timeout`."""
    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CallRefused(Event):
    """A guard did not let an attempt begin."""

    LABELS: ClassVar[tuple[str, ...]] = ("guard", "reason")

    guard: str
    reason: str
    """`circuit-open`, `overloaded`, `no-time`, `retry-budget` or `superseded`."""


@dataclass(frozen=True, slots=True)
class CallEnded(Event):
    """A guarded call, a series of attempts, is over."""

    LABELS: ClassVar[tuple[str, ...]] = ("guard", "ending")

    guard: str
    ending: str
    """`success`, `rejected`, `failed`, `unknown` or `cancelled`."""
    attempts: int
    """Attempts begun; 0 when the call was refused before the first."""
    seconds: float


@dataclass(frozen=True, slots=True)
class BreakerChanged(Event):
    """A circuit breaker moved to another state, or staff forced it."""

    LABELS: ClassVar[tuple[str, ...]] = ("breaker", "before", "after", "cause")

    breaker: str
    before: str
    """`closed`, `open`, `half_open`, `forced_open` or `forced_closed`; so is `after`."""
    after: str
    cause: str
    """`failures`, `timer`, `probe-failed`, `probes-succeeded` or `staff`."""
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """A shared store does not answer: this process goes on with its own copy of the state."""

    LABELS: ClassVar[tuple[str, ...]] = ("store",)

    store: str
    error: str


@dataclass(frozen=True, slots=True)
class StoreFound(Event):
    """A shared store answers again."""

    LABELS: ClassVar[tuple[str, ...]] = ("store",)

    store: str


# -- the server's own protection -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AdmissionRefused(Event):
    """A request was turned away before any work was done for it."""

    LABELS: ClassVar[tuple[str, ...]] = ("admission", "reason")

    admission: str
    reason: str
    """`client-gone`, `no-time`, `in-flight` or `backlog`."""


@dataclass(frozen=True, slots=True)
class SourceDegraded(Event):
    """A non-critical source gave no live value; the answer stands on a lower rung."""

    LABELS: ClassVar[tuple[str, ...]] = ("source", "rung")

    source: str
    rung: str
    """`stale`, `default` or `skipped`."""


@dataclass(frozen=True, slots=True)
class ReadOnlySwitched(Event):
    """Staff switched read-only mode on or off."""

    LABELS: ClassVar[tuple[str, ...]] = ("mode",)

    mode: str
    """`on` or `off`."""
    actor: str
    reason: str


# -- keys ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyMet(Event):
    """A request with a key was answered from what the ledger knew; nothing was run."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "answer")

    operation: str
    answer: str
    """`replay`, `in-progress`, `unknown`, `reused`, `expired` or `unavailable`."""
    key_id: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """A claimed key's work has ended."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "by", "ending")

    operation: str
    by: str
    """`request`, `worker`, `reconciler`, `webhook` or `staff`."""
    ending: str
    """`settled`, `free`, `unknown` or `overtaken`."""
    seconds: float
    key_id: str = ""


# -- deferred work ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperationMoved(Event):
    """A run of deferred work has ended, or it was cancelled; emitted within the settling transaction."""

    LABELS: ClassVar[tuple[str, ...]] = ("operation", "to")

    operation: str
    to: str
    """`completed`, `refused`, `gave-up`, `cancelled` or `waits`."""
    attempts: int
    """Runs begun so far."""
    key_id: str = ""


@dataclass(frozen=True, slots=True)
class NudgeLost(Event):
    """A message to the workers was not published; the sweep will find the work."""

    LABELS: ClassVar[tuple[str, ...]] = ("reason",)

    reason: str
    """`queue-full`, or the error's class."""


# -- the bus ---------------------------------------------------------------------------------------

E = TypeVar("E", bound=Event)


class _Bus:
    """Who listens. Copied on write, so that emitting takes no lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.listeners: tuple[tuple[type[Event], Callable[[Any], None]], ...] = ()


_bus = _Bus()


def emit(event: Event) -> None:
    """Tell every listener of this kind of event, in the caller's thread.

    A listener that fails is logged and skipped: watching must not change what is watched.
    """
    for kind, listener in _bus.listeners:
        if isinstance(event, kind):
            try:
                listener(event)
            except Exception:
                logger.exception("A listener failed on %s", type(event).__name__)


def subscribe(kind: type[E], listener: Callable[[E], None]) -> Callable[[], None]:
    """Call the listener with each event of that kind (`Event`: all); return what ends it."""
    entry: tuple[type[Event], Callable[[Any], None]] = (kind, listener)
    with _bus.lock:
        _bus.listeners = (*_bus.listeners, entry)

    def unsubscribe() -> None:
        with _bus.lock:
            _bus.listeners = tuple(known for known in _bus.listeners if known is not entry)

    return unsubscribe


def catalogue() -> tuple[type[Event], ...]:
    """Return every kind of event, in the order of this file."""
    kinds = (value for value in globals().values() if isinstance(value, type))
    return tuple(kind for kind in kinds if issubclass(kind, Event) and kind is not Event)
