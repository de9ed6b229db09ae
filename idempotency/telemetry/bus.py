"""The bus: whoever emits knows none of those who listen."""

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


E = TypeVar("E", bound=Event)


Entry = tuple[type[Event], Callable[[Any], None]]


class _Bus:
    """Who listens, and to what. Replaced as a whole when that changes, so that emitting takes no lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.replace(())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return who listens, in the order in which they came."""
        return self._known[0]

    def replace(self, entries: tuple[Entry, ...]) -> None:
        """Let those listen, and nobody else."""
        of_kind: dict[type[Event], tuple[Callable[[Any], None], ...]] = {}
        self._known = entries, of_kind

    def listeners(self, kind: type[Event]) -> tuple[Callable[[Any], None], ...]:
        """Return who listens to that kind."""
        entries, of_kind = self._known
        if kind not in of_kind:
            of_kind[kind] = tuple(
                listener for wanted, listener in entries if issubclass(kind, wanted)
            )
        return of_kind[kind]


_bus = _Bus()


def emit(event: Event) -> None:
    """Tell every listener of this kind of event, in the caller's thread.

    A listener that fails is logged and skipped: watching must not change what is watched.
    """
    for listener in _bus.listeners(type(event)):
        try:
            listener(event)
        except Exception:
            logger.exception("A listener failed on %s", type(event).__name__)


def subscribe(kind: type[E], listener: Callable[[E], None]) -> Callable[[], None]:
    """Call the listener with each event of that kind (`Event`: all); return what ends it."""
    entry: Entry = (kind, listener)
    with _bus.lock:
        _bus.replace((*_bus.entries, entry))

    def unsubscribe() -> None:
        with _bus.lock:
            _bus.replace(tuple(known for known in _bus.entries if known is not entry))

    return unsubscribe
