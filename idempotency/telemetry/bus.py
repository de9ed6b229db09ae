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
