"""The circuit breaker: stops calling what keeps failing, and finds out when it works again.

Closed, calls pass and are counted; open, they are refused at once; half open, a few leased probes
are let through. The state is shared between processes; while the store is lost, each process keeps
its own, beginning closed.
"""

import uuid
from dataclasses import dataclass

from idempotency.clock import SYSTEM, Clock
from idempotency.resilience.breakerlocal import LocalMachine
from idempotency.resilience.breakershared import SharedMachine
from idempotency.resilience.breakerstate import (
    BreakerSettings,
    BreakerState,
    Change,
    Decision,
    Force,
    Machine,
    Snapshot,
)
from idempotency.resilience.store import SharedStore, StoreUnavailable
from idempotency.resilience.table import Vote
from idempotency.telemetry import BreakerChanged, emit

_DEFAULT_SETTINGS = BreakerSettings()


@dataclass(frozen=True, slots=True)
class Permit:
    """The answer to one call that wants to begin. Who got one that is allowed calls `record`."""

    allowed: bool
    retry_after: float
    """Seconds after which asking again makes sense; 0 where allowed."""
    machine: Machine
    token: str
    generation: int


class CircuitBreaker:
    """One breaker per account at a dependency; safe to share between threads.

    Args:
        name: the same in every process that shares the state.
        store: where the state is shared; None keeps it in this process.
        settings: when it opens and how it closes.
    """

    def __init__(
        self,
        *,
        name: str,
        store: SharedStore | None = None,
        settings: BreakerSettings = _DEFAULT_SETTINGS,
        clock: Clock = SYSTEM,
    ) -> None:
        self.name, self.settings = name, settings
        self._clock = clock
        self._shared = None if store is None else SharedMachine(name, settings, store)
        self._local = LocalMachine(settings, clock)
        self._alone = store is None

    def acquire(self) -> Permit:
        """Ask whether a call may begin now."""
        token = uuid.uuid4().hex
        decision, machine = self._decide(token)
        self._announce(decision.change)
        return Permit(decision.allowed, decision.retry_after, machine, token, decision.generation)

    def _decide(self, token: str) -> tuple[Decision, Machine]:
        if self._shared is not None:
            try:
                decision = self._shared.acquire(token)
            except StoreUnavailable:
                self._go_alone()
            else:
                self._alone = False
                return decision, self._shared
        return self._local.acquire(token), self._local

    def _go_alone(self) -> None:
        if not self._alone:
            # What an earlier loss of the store left behind is out of date.
            self._local = LocalMachine(self.settings, self._clock)
            self._alone = True

    def record(self, permit: Permit, vote: Vote) -> None:
        """Count how the permitted call ended; every permit that was allowed ends here.

        A vote for a store that is lost meanwhile is dropped; a probe's lease then ends by itself.
        """
        try:
            self._announce(permit.machine.record(permit.token, permit.generation, vote))
        except StoreUnavailable:
            self._go_alone()

    def wait(self) -> float | None:
        """Return the seconds for which a call would be refused, or None; takes up nothing."""
        seen = self.snapshot()
        if seen.state is BreakerState.FORCED_OPEN:
            return self.settings.open_seconds
        if seen.state is BreakerState.HALF_OPEN and seen.probes >= self.settings.probes:
            return min(self.settings.open_seconds, 1.0)
        return seen.open_for or None

    def snapshot(self) -> Snapshot:
        """Return the state as staff and metrics see it."""
        if self._shared is not None:
            try:
                return self._shared.snapshot()
            except StoreUnavailable:
                self._go_alone()
        return self._local.snapshot()

    @property
    def alone(self) -> bool:
        """Whether it should share its state with other processes and, by the last answer, cannot."""
        return self._shared is not None and self._alone

    def force(self, force: Force, *, actor: str, reason: str) -> None:
        """Hold the breaker open or closed, or clear it, for every process that shares it.

        A forced state lives in the store: while the store is lost, processes decide alone.

        Raises:
            StoreUnavailable: the store did not take it; nothing changed.
        """
        machine: Machine = self._local if self._shared is None else self._shared
        self._announce(machine.force(force, actor=actor, reason=reason), actor=actor, reason=reason)

    def _announce(self, change: Change, *, actor: str = "", reason: str = "") -> None:
        if change.before is not change.after:
            emit(
                BreakerChanged(
                    breaker=self.name,
                    before=change.before,
                    after=change.after,
                    cause=change.cause,
                    actor=actor,
                    reason=reason,
                )
            )
