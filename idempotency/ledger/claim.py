"""The claim: what a handler holds while it works, and its only way to call outside."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import Error

from idempotency.clock import SYSTEM, Clock
from idempotency.conf import conf
from idempotency.exceptions import CallError, CallUnknown, Fenced, LedgerUnavailable, Misuse
from idempotency.faultpoints import reach
from idempotency.ledger import draft, journal
from idempotency.ledger.acquire import Won
from idempotency.ledger.phases import Phases
from idempotency.ledger.series import applied, ending_of, freeze, next_rotation
from idempotency.ledger.values import About, Identity
from idempotency.resilience import Deadline, current_deadline, deadline_scope, journalled
from idempotency.types import Downstream, Ending, OutsideRequest, OutsideResult

_REOPEN_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Promise:
    """Work that is to be done later: how many seconds later at the earliest."""

    delay: float = 0


class Claim:
    """One claim of a key, from its first statement to its settlement.

    Attributes:
        id: the key's row: what business rows keep to find themselves again, since keys are purged.
        key, scope, operation: the identity.
        generation: which life of the key this is.
        draft: the key's row, while it may not be written yet (Note [Draft]).
        written: whether the row has been written, by this claim or before it.
        called: whether this claim has committed a phase, for an outside call or as the begin of a deferred run: how it
            ends must then be written, it cannot be rolled back.
        resumed: whether an earlier run was applied in part, and this one is to finish it.
        replaying: whether only what is on record may be returned to the handler, and nothing be sent.
        missing: the step that a replay wanted and that is not on record as applied.
        promised: set where the handler deferred its work: the key then waits for a runner.
        last_ending: the sender that ended last and how, in case its transaction is lost.

    Args:
        held: the open phase has locked the key, and written nothing yet.
    """

    def __init__(
        self,
        *,
        identity: Identity,
        phases: Phases,
        won: Won,
        keyless: bool = False,
        held: bool = False,
        deadline: Deadline | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.identity = identity
        self.scope, self.operation, self.key = identity.scope, identity.operation, identity.key
        self.phases = phases
        self.deadline = deadline or current_deadline() or Deadline.after(conf.REQUEST_BUDGET)
        self.id: uuid.UUID = won.id
        self.generation = won.generation
        self.token = won.token
        self.fresh = won.fresh
        self.resumed = won.resumed
        self.draft = won.draft
        self.called = False
        self.replaying = False
        self.missing = ""
        self.about = About(resource=won.resource)
        self.promised: Promise | None = None
        self.last_ending: tuple[journal.OpenSender, journal.StepEnding] | None = None
        self.written = won.draft is None or won.written
        self._keyless = keyless
        # Whether the open phase has nothing of the ledger's, or what can be written again: Note [Phases].
        self._alone = held or won.draft is not None
        self._clock = clock
        self._sends = 0
        self._called_steps: set[str] = set()
        self._journal: dict[str, journal.Recorded] | None = {} if won.fresh else None

    @property
    def exists(self) -> bool:
        """Whether this key is to be kept; that of a request without one is only once there is something to keep."""
        return self.written or not self._keyless

    def require_key(self) -> None:
        """Write the key's row now, also where a handler's savepoint undid it: other rows of the phase refer to it (R4).

        Raises:
            Fenced: the key has another owner by now.
            Misuse: it is another thread than the handler's.
        """
        self.phases.require_thread()
        if self.draft is not None:
            if not draft.write(phases=self.phases, draft=self.draft) and not self.written:
                raise Fenced("The key has another owner by now.")
            self.written = True

    # -- for handlers ------------------------------------------------------------------------------------------------

    def link(self, *, resource: str = "", reference: str = "", summary: str = "") -> None:
        """Say what this key is about; written with the phase's own last statement, and so without one more.

        Args:
            resource: the address at which the caller finds the outcome, e.g. `/api/payments/7/`.
            reference: what people search for, e.g. the order's number.
            summary: one line for staff, e.g. `Charge of 12.00 EUR for order 881`.
        """
        self.about = About(
            resource=resource or self.about.resource,
            reference=reference or self.about.reference,
            summary=summary or self.about.summary,
        )

    def outside_call(
        self,
        *,
        step: str,
        request: bytes | Mapping[str, Any],
        send: Callable[[OutsideRequest], OutsideResult],
        downstream: Downstream,
        subject: object = "",
    ) -> OutsideResult:
        """Call outside once per key: journal it, commit, call with no transaction open, record how it ended.

        A resumed run gets the recorded result of an applied step instead of a second call.

        Args:
            step: the name of this call within the handler; permanent, and of no other call of the same run.
            request: what to send; frozen at the first send and repeated byte for byte.
            send: makes the call, through a guard; gets the frozen bytes and the downstream key.
            downstream: what the other side promises.
            subject: what the call is about, for people.

        Raises:
            CallRejected: the other side refused; nothing happened.
            CallFailed: it certainly did not happen.
            CallUnknown: it may have happened; the key waits for reconciliation.
            OutsideCallInTransaction: the handler has a transaction of its own open.
            Fenced: the key has another owner by now; nothing was sent.
            Misuse: this run has called the step before, whose result it would get; or as for `require_key`.
        """
        self.phases.require_own()
        self._require_new(step)
        earlier = self._recorded(step)
        if earlier is not None and earlier.result is not None:
            return OutsideResult(reference=earlier.reference, record=earlier.result)
        if self.replaying:
            self.missing = step
            raise CallUnknown(
                f"The step {step!r} is not on record as applied.", code="not-recorded"
            )
        sender = journal.begin(
            phases=self.phases,
            key_id=self.id,
            token=self.token,
            generation=self.generation,
            step=step,
            rotation=next_rotation(earlier, downstream),
            payload=freeze(request),
            about=self.about,
            subject=str(subject),
            downstream=downstream,
            send_within=max(0.0, self.deadline.left()),
            draft=self.draft,
        )
        self.called = self.written = True
        self.draft = None
        self.last_ending = (sender, journal.StepEnding(Ending.NOT_SENT, 0))
        self._alone = False
        self.phases.commit()
        reach("after_phase1")
        return self._send(sender, send)

    # -- for execution -----------------------------------------------------------------------------------------------

    def begin_effects(self) -> None:
        """Begin the handler's own writes in the open phase."""
        self.phases.begin_effects(alone=self._alone)

    def undo_effects(self) -> None:
        """Undo the handler's own writes, and its row where that was one of them; what the last call came to stays."""
        undone = self.phases.undo_effects()
        if self.draft is not None:
            self.written = False
        elif undone and self._alone:
            self.record_ending()

    def record_ending(self) -> bool:
        """Write in the open phase what the last call came to; return whether this claim may still write to the key."""
        return self.last_ending is None or journal.end(
            phases=self.phases,
            key_id=self.id,
            token=self.token,
            sender=self.last_ending[0],
            ending=self.last_ending[1],
        )

    def may_have_called(self) -> bool:
        """Whether the key can have a journal, from this claim or an earlier one."""
        return self.called or not self.fresh

    # -- one series of sends -----------------------------------------------------------------------------------------

    def _require_new(self, step: str) -> None:
        if step in self._called_steps:
            raise Misuse(f"The step {step!r} was called twice: give each call a name of its own.")
        self._called_steps.add(step)

    def _recorded(self, step: str) -> journal.Recorded | None:
        if self._journal is None:
            left = max(0.0, self.deadline.left())
            self._journal = journal.read(
                phases=self.phases, key_id=self.id, generation=self.generation, send_within=left
            )
        return self._journal.get(step)

    def _send(
        self, sender: journal.OpenSender, send: Callable[[OutsideRequest], OutsideResult]
    ) -> OutsideResult:
        self._sends = 0
        # From here on, and until it has ended, whatever breaks says nothing of it.
        self.last_ending = None
        try:
            on_record = journalled(self._before_send, keyed=sender.keyed)
            with deadline_scope(self.deadline), on_record:
                result = send(OutsideRequest(sender.downstream_key, sender.payload))
                ending = applied(result, sends=self._sends)
                reach("after_call")
        except BaseException as error:
            self._reopen(sender, ending_of(error, sends=self._sends))
            if isinstance(error, CallError) or not isinstance(error, Exception):
                raise
            raise CallUnknown("The call ended in an error nobody had foreseen.") from error
        self._reopen(sender, ending)
        return result

    def _before_send(self) -> None:
        """Stop a send that would leave after this claim's time: somebody else may own the key by then (R12).

        Raises:
            Fenced: the time is over.
        """
        if self.deadline.expired:
            raise Fenced("The time of this claim was over before the request could be sent.")
        self._sends += 1

    def _reopen(self, sender: journal.OpenSender, ending: journal.StepEnding) -> None:
        """Open the next phase with the ending as its first statement; try hard, for it is the only evidence (R19).

        Raises:
            Fenced: the key has another owner; the ending is committed all the same.
            LedgerUnavailable: the database cannot be reached; the step stays open and is reconciled.
        """
        self.last_ending = (sender, ending)
        for number in range(_REOPEN_ATTEMPTS):
            try:
                self.phases.open()
                owned = self.record_ending()
                break
            except Error:
                self.phases.abandon()
                self._clock.wait(None, self._clock.uniform(0, 0.1 * 2**number))
        else:
            raise LedgerUnavailable("The call has ended, but its ending could not be recorded.")
        if not owned:
            self.phases.commit()
            raise Fenced("The key has another owner by now.")
        self._alone = True
        self.begin_effects()


_CURRENT: ContextVar[Claim | None] = ContextVar("idempotency_claim", default=None)


def current_claim() -> Claim | None:
    """Return the claim whose work this context does, or None."""
    return _CURRENT.get()


@contextmanager
def claim_scope(claim: Claim) -> Iterator[None]:
    """Make it the context's claim."""
    token = _CURRENT.set(claim)
    try:
        yield
    finally:
        _CURRENT.reset(token)
