"""One call as a series of attempts: what has happened so far, and what may happen next.

Without input or output of its own, so that `Guard.call` and `Guard.acall` decide alike.
"""

from dataclasses import dataclass
from typing import NoReturn

from idempotency.clock import Clock
from idempotency.exceptions import CallError, CallFailed, CallRejected, CallUnknown
from idempotency.resilience.attempt import Attempt, Journal
from idempotency.resilience.breaker import CircuitBreaker, Permit
from idempotency.resilience.classifier import Classification, classify
from idempotency.resilience.deadline import Deadline, current_deadline
from idempotency.resilience.retry import RetryBudget, RetryPolicy
from idempotency.resilience.signs import describe
from idempotency.resilience.table import Declared, Vote
from idempotency.telemetry import AttemptEnded, CallEnded, CallRefused, emit
from idempotency.types import CallReport, Outcome

_DETAILS = {
    "circuit-open": "recent calls failed, so no call is made for a moment",
    "overloaded": "as many calls as allowed are under way already",
    "no-time": "too little time is left for a call",
    "superseded": "this process may not send any more",
    "retry-budget": "too many calls are being repeated already",
    "cancelled": "the caller stopped waiting",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """What a guard was told about its dependency; see `Guard` for each."""

    name: str
    keyed: bool
    policy: RetryPolicy
    breaker: CircuitBreaker | None
    budget: RetryBudget | None
    declares: Declared
    effect: bool
    clock: Clock


class Series:
    """The attempts of one call. Every method but `begin`, `accepts` and `failed` ends the call."""

    def __init__(self, terms: Terms, journal: Journal | None) -> None:
        self._terms, self._journal = terms, journal
        self._started = terms.clock.now()
        self._deadline = self._own_deadline()
        self._attempts = 0
        self._attempt_started = self._started
        self._permit: Permit | None = None
        # What all attempts so far have shown.
        self._sent = False
        self._maybe_applied = False
        self._outcome = Outcome.TRANSIENT
        self._last_error = ""
        self._retry_after: float | None = None

    def _own_deadline(self) -> Deadline:
        policy, ambient = self._terms.policy, current_deadline()
        own = Deadline.after(policy.series, self._terms.clock)
        if ambient is None:
            return own
        return own.child(at_most=ambient.left() - policy.reserve)

    # -- an attempt begins -------------------------------------------------------------------------

    def begin(self) -> Attempt:
        """Return the next attempt, or end the call where none may be made."""
        policy = self._terms.policy
        if self._deadline.left() < policy.useful:
            self.refuse("no-time")
        self._ask_the_breaker()
        self._ask_the_journal()
        if self._attempts == 0 and self._terms.budget is not None:
            self._terms.budget.earn()
        self._attempts += 1
        self._attempt_started = self._terms.clock.now()
        deadline = self._deadline.child(at_most=policy.attempt_timeout)
        return Attempt(number=self._attempts, deadline=deadline)

    def _ask_the_breaker(self) -> None:
        if self._terms.breaker is None:
            return
        permit = self._terms.breaker.acquire()
        if not permit.allowed:
            self.refuse("circuit-open", retry_after=permit.retry_after)
        self._permit = permit

    def _ask_the_journal(self) -> None:
        if self._journal is None:
            return
        try:
            self._journal.before_send()
        except BaseException as error:  # noqa: BLE001 - raised as an ending
            # The send does not happen, whatever the reason.
            self._vote(Vote.NONE)
            self._last_error = describe(error)
            if classify(error).cancelled:
                self.stopped(error)
            self.refuse("superseded", cause=error)

    # -- an attempt ends ---------------------------------------------------------------------------

    def accepts(self, attempt: Attempt, answer: object) -> bool:
        """Return whether what came back is an answer; a response that reports an error is not."""
        is_error = isinstance(answer, BaseException)
        if not is_error and self._classify(attempt, answer).outcome is not Outcome.SUCCESS:
            return False
        self._vote(Vote.SUCCESS)
        self._emit_attempt(Outcome.SUCCESS, "answered")
        self._emit_end("success")
        return True

    def failed(self, attempt: Attempt, met: object) -> float:
        """Take in a failed attempt; return the pause before the next, or end the call."""
        if isinstance(met, CallRejected):
            # An answer under this downstream key is the answer to every send of it.
            self._rejected(met)
        found = self._classify(attempt, met)
        cause = met if isinstance(met, BaseException) else None
        self._vote(found.vote)
        self._take_in(found, met)
        self._emit_attempt(found.outcome, found.reason)
        if found.cancelled and cause is not None:
            self.stopped(cause)
        pause = self._pause_after(found)
        if pause is None:
            self._end(cause)
        return pause

    def _pause_after(self, found: Classification) -> float | None:
        """Return the pause before another attempt, or None where there is to be no other."""
        policy, budget = self._terms.policy, self._terms.budget
        if self._attempts >= policy.attempts or not self._may_repeat(found.outcome):
            return None
        word = found.retry_after
        pause = policy.pause(self._attempts - 1, word=word, clock=self._terms.clock)
        if pause > self._deadline.left() - policy.useful:
            # A pause is never cut short: what cannot be waited for ends the series at once.
            return None
        if budget is not None and not budget.spend():
            emit(CallRefused(guard=self._terms.name, reason="retry-budget"))
            return None
        return pause

    def _may_repeat(self, outcome: Outcome) -> bool:
        if outcome is Outcome.AMBIGUOUS:
            # Guard and journal row are told apart: one of them that knows of no keys is enough.
            honoured = self._journal is not None and self._journal.keyed and self._terms.keyed
            return honoured or not self._terms.effect
        return outcome is Outcome.TRANSIENT

    def _classify(self, attempt: Attempt, met: object) -> Classification:
        return classify(
            met,
            bytes_may_have_left=attempt.bytes_may_have_left,
            declares=self._terms.declares,
            clock=self._terms.clock,
        )

    def _take_in(self, found: Classification, met: object) -> None:
        self._sent |= found.sent
        self._maybe_applied |= found.maybe_applied
        self._outcome = found.outcome
        self._retry_after = found.retry_after
        told = describe(met) if isinstance(met, BaseException) else type(met).__qualname__
        self._last_error = f"{found.reason}: {told}"

    def _vote(self, vote: Vote) -> None:
        if self._terms.breaker is not None and self._permit is not None:
            self._terms.breaker.record(self._permit, vote)
        self._permit = None

    # -- the call ends -----------------------------------------------------------------------------

    def refuse(
        self,
        code: str,
        *,
        retry_after: float | None = None,
        cause: BaseException | None = None,
    ) -> NoReturn:
        """End the call because no further attempt may begin."""
        emit(CallRefused(guard=self._terms.name, reason=code))
        self._retry_after = self._retry_after if retry_after is None else retry_after
        self._end(cause, code=code)

    def cancelled(self) -> NoReturn:
        """End the call because the caller no longer waits."""
        self._end(None, code="cancelled")

    def stopped(self, error: BaseException) -> NoReturn:
        """End the call because the caller is being stopped by this error.

        It goes on as it is where nothing may have happened; otherwise that has to be said.
        """
        if self._terms.effect and self._maybe_applied:
            self._end(error)
        self._emit_end("cancelled")
        raise error

    def _rejected(self, error: CallRejected) -> NoReturn:
        self._vote(Vote.SUCCESS)
        self._sent, self._outcome = True, Outcome.FATAL
        self._last_error = describe(error)
        error.report = self.report()
        self._emit_attempt("rejected", "rejected")
        self._emit_end("rejected")
        raise error

    def _end(self, cause: BaseException | None, *, code: str = "gateway-unavailable") -> NoReturn:
        unknown = self._terms.effect and self._maybe_applied
        self._emit_end("unknown" if unknown else "failed")
        if isinstance(cause, CallUnknown if unknown else CallFailed):
            # An inner guard, or the adapter, has said it already.
            cause.report = self.report()
            raise cause
        ending = self._unknown() if unknown else self._failed(code)
        raise ending from cause

    def _unknown(self) -> CallError:
        detail = f"{self._terms.name}: the call may have been executed; its outcome is not known"
        return CallUnknown(detail, report=self.report())

    def _failed(self, code: str) -> CallError:
        error = refusal(self._terms.name, code, retry_after=self._retry_after)
        error.sent, error.report = self._sent, self.report()
        return error

    def report(self) -> CallReport:
        """Return what has been seen so far."""
        return CallReport(
            attempts=self._attempts,
            seconds=self._terms.clock.now() - self._started,
            outcome=Outcome.AMBIGUOUS if self._maybe_applied else self._outcome,
            last_error=self._last_error,
            sent=self._sent,
            retry_after=self._retry_after,
        )

    # -- events ------------------------------------------------------------------------------------

    def _emit_attempt(self, outcome: str, reason: str) -> None:
        emit(
            AttemptEnded(
                guard=self._terms.name,
                outcome=str(outcome),
                reason=reason,
                number=self._attempts,
                seconds=self._terms.clock.now() - self._attempt_started,
            )
        )

    def _emit_end(self, ending: str) -> None:
        seconds = self._terms.clock.now() - self._started
        emit(CallEnded(self._terms.name, ending, attempts=self._attempts, seconds=seconds))


def refusal(name: str, code: str, *, retry_after: float | None = None) -> CallFailed:
    """Return the error of a call that certainly changed nothing."""
    detail = f"{name}: {_DETAILS.get(code, 'the call failed without effect')}"
    return CallFailed(detail, code=code, retry_after=retry_after)
