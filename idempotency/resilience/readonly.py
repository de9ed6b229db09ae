"""Read-only mode: staff stop all writes in all processes; reads go on."""

from contextlib import suppress
from threading import Lock
from typing import Any

from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import Refused
from idempotency.resilience.store import SharedStore, StoreUnavailable
from idempotency.telemetry import ReadOnlySwitched, emit

_READ = "return {redis.call('HGET', KEYS[1], 'reason') or false}"
_ON = "redis.call('HSET', KEYS[1], 'reason', ARGV[1], 'actor', ARGV[2]) return {1}"
_OFF = "redis.call('DEL', KEYS[1]) return {1}"


class ReadOnlySwitch:
    """Whether writes are refused; one switch per name, for every process that shares the store.

    A process asks the store once in `refresh` seconds, and keeps the last answer while the store is
    lost. Without a store the switch is this process's own.
    """

    def __init__(
        self,
        *,
        name: str = "service",
        store: SharedStore | None = None,
        refresh: float = 1.0,
        retry_after: float = 30.0,
        clock: Clock = SYSTEM,
    ) -> None:
        self.name = name
        self._keys = [f"idempotency:readonly:{{{name}}}"]
        self._refresh, self._retry_after, self._clock = refresh, retry_after, clock
        self._scripts = None if store is None else tuple(map(store.script, (_READ, _ON, _OFF)))
        self._lock = Lock()
        self._reason: str | None = None
        self._read_at = float("-inf")

    def on(self, *, actor: str, reason: str) -> None:
        """Refuse writes from now on; every process follows within `refresh` seconds.

        Raises:
            StoreUnavailable: the store did not take it; nothing changed.
        """
        if self._scripts is not None:
            self._scripts[1](self._keys, [reason, actor])
        self._reason = reason
        emit(ReadOnlySwitched(mode="on", actor=actor, reason=reason))

    def off(self, *, actor: str, reason: str) -> None:
        """Take writes again.

        Raises:
            StoreUnavailable: the store did not take it; nothing changed.
        """
        if self._scripts is not None:
            self._scripts[2](self._keys, [])
        self._reason = None
        emit(ReadOnlySwitched(mode="off", actor=actor, reason=reason))

    def reason(self) -> str | None:
        """Return why writes are refused, or None where they are taken."""
        if self._scripts is not None and self._due():
            with suppress(StoreUnavailable):
                return self.ask()
        return self._reason

    def ask(self) -> str | None:
        """Return the same by the store's word of now. Raises: StoreUnavailable."""
        if self._scripts is not None:
            (answer,) = self._scripts[0](self._keys, [])
            self._reason = None if answer is None else _text(answer)
        return self._reason

    def refuse_writes(self) -> None:
        """Raise Refused while the switch is on: to be called before a write begins."""
        reason = self.reason()
        if reason is not None:
            raise Refused(
                f"only reads are served for the moment: {reason}",
                code="read-only",
                retry_after=self._retry_after,
            )

    def _due(self) -> bool:
        with self._lock:
            now = self._clock.now()
            due = now >= self._read_at + self._refresh
            if due:
                self._read_at = now
            return due


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
