"""How the endings of a deferred run are written (R31, R33).

ended                                journal agrees: nothing applied     otherwise
a result was returned                completed                           completed, or unknown while a step is open
TemporaryFailure, a transient call   waits again; gave up at the limit   unknown
refused by a breaker or bulkhead     waits again, attempt given back     unknown
our account is refused               waits again, attempt given back     unknown
sealed under another process's key   waits again, attempt given back     unknown
stopped in good order                waits again, in a new cycle         unknown
a verdict, a refused call            completed with its code             unknown, needs a person
anything else                        gave up, at once                    unknown
"""

import json
import logging
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import InterfaceError, OperationalError
from rest_framework.exceptions import APIException

from idempotency import telemetry
from idempotency.clock import SYSTEM, Clock
from idempotency.exceptions import (
    AccountRefused,
    CallError,
    CallFailed,
    CallRejected,
    CallUnknown,
    LedgerUnavailable,
    TemporaryFailure,
    Unreadable,
)
from idempotency.http import problem
from idempotency.ledger import settlement, storable, work
from idempotency.ledger.claim import Claim
from idempotency.ledger.due import Work
from idempotency.ledger.values import Settlement
from idempotency.operations.registry import Definition, resolver_of
from idempotency.resilience import is_conflict, is_outage
from idempotency.resilience.retryafter import as_seconds
from idempotency.types import Outcome, State

logger = logging.getLogger(__name__)

GAVE_UP = "gave-up"
CANCELLED = "cancelled"

_REFUSED_HERE = frozenset({"circuit-open", "overloaded"})
"""Codes of a guard that refused."""
_CAUSES = 10


class DeferredSettler:
    """Writes the endings of one run of deferred work.

    Args:
        tolerate: a sender that never ended may still send, under the same downstream key (R36).
    """

    def __init__(
        self,
        *,
        work: Work,
        definition: Definition,
        settlement: Settlement,
        tolerate: bool = False,
        clock: Clock = SYSTEM,
    ) -> None:
        self._work = work
        self._definition = definition
        self._settlement = settlement
        self._tolerate = tolerate
        self._clock = clock

    def is_failure(self, value: Any) -> bool:
        """Whether a returned value is a failure: never."""
        return False

    def completed(self, claim: Claim, value: Any) -> bool:
        """Keep the result."""
        wrote = settlement.complete_deferred(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            settlement=self._settlement,
            ended=work.Conclusion(result=self._as_json(value)),
            about=claim.about,
        )
        if wrote:
            self._emit("completed")
        return wrote

    def is_final(self, error: BaseException) -> bool:
        """Whether the error is an answer about the business: it has a code of its own."""
        if isinstance(error, CallRejected):
            return True
        return isinstance(error, APIException) and error.status_code < 500

    def refused(self, claim: Claim, error: BaseException) -> bool:
        """Complete the key with a verdict, provided that nothing was applied."""
        return self._end(claim, error, _verdict(error), "refused")

    def undone(self, claim: Claim, error: BaseException | None) -> bool:
        """Wait again, or give up; provided that the journal agrees that nothing happened."""
        if isinstance(error, CallUnknown):
            return False
        if error is not None and not isinstance(error, Exception):
            return self._wait(claim, error, 0, new_cycle=True)
        temporary = temporary_cause(error)
        if temporary is None:
            return self.give_up(
                claim, error, "The work failed in a way that a repeat does not mend."
            )
        give_back = _has_not_begun(temporary)
        if self._work.is_last and not give_back:
            return self.give_up(claim, error, "The work failed for a passing reason too often.")
        return self._wait(claim, error, self._pause(temporary), give_back=give_back)

    def not_applied(self, claim: Claim) -> bool:
        """Wait again after a run that ended without a word and certainly changed nothing; at the limit give up."""
        if not self._work.is_last:
            return self._wait(claim, None, self._pause(None))
        return self.give_up(claim, None, "The work was interrupted too often.")

    def give_up(self, claim: Claim, error: BaseException | None, detail: str) -> bool:
        """Complete the key with `gave-up`, provided that nothing was applied."""
        return self._end(claim, error, {"code": GAVE_UP, "detail": detail}, GAVE_UP)

    # -- writing -----------------------------------------------------------------------------------------------------

    def _end(
        self, claim: Claim, error: BaseException | None, told: dict[str, str], how: str
    ) -> bool:
        if not settlement.complete_deferred(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            settlement=self._settlement,
            ended=work.Conclusion(error=told, last_error=_describe(error)),
        ):
            return False
        tell_ended(claim=claim, name=self._work.name, error=error)
        self._emit(how)
        return True

    def _wait(
        self,
        claim: Claim,
        error: BaseException | None,
        delay: float,
        *,
        give_back: bool = False,
        new_cycle: bool = False,
    ) -> bool:
        connection = claim.phases.connection
        if not settlement.wait_again(
            connection=connection,
            key_id=claim.id,
            token=claim.token,
            delay=delay,
            tolerate=self._tolerate,
        ):
            return False
        work.record_try(
            connection=connection,
            id=self._work.id,
            last_error=_describe(error),
            give_back=give_back,
            new_cycle=new_cycle,
        )
        self._emit("waits")
        return True

    def _pause(self, error: BaseException | None) -> float:
        """Draw the pause before the next run; another's word is never shortened, and jittered like ours (R25)."""
        word = as_seconds(getattr(error, "retry_after", None))
        if word:
            return word + self._clock.uniform(0, min(word / 2, self._definition.policy.cap))
        retries = max(0, self._work.cycle_attempts - 1)
        return self._definition.policy.pause(retries, clock=self._clock)

    def _as_json(self, value: Any) -> str:
        """Return the result as JSON; the work is done, so what JSON cannot hold is left out, and logged (R17)."""
        try:
            plain = json.dumps(value, cls=DjangoJSONEncoder, allow_nan=False)
            return storable.as_json(json.loads(plain))
        except Exception:
            # Whatever the handler's objects do when they are read: too deep, or an error of their own.
            logger.exception("%s: the result of operation %s cannot be kept", *self._about())
            return "null"

    def _about(self) -> tuple[str, str]:
        return self._work.name, str(self._work.id)

    def _emit(self, how: str) -> None:
        telemetry.emit(
            telemetry.OperationMoved(
                self._work.name, how, self._work.attempts, str(self._work.key_id)
            )
        )


def tell_ended(*, claim: Claim, name: str, error: BaseException | None) -> None:
    """Tell the business rows that the work ended without success, in the settling transaction (R13)."""
    resolver = resolver_of(claim.operation) or resolver_of(name)
    if resolver is not None:
        resolver.ended(claim=claim, state=State.COMPLETED, error=error)


def temporary_cause(error: BaseException | None) -> BaseException | None:
    """Return the error in the chain of causes that says "not now", if one does (R33).

    Besides what says so in words, that is the database's own trouble: the run's transaction was rolled back by it.
    """
    seen = error
    for _ in range(_CAUSES):
        if seen is None:
            return None
        if isinstance(seen, CallFailed):
            return None if _is_hopeless(seen) else seen
        if isinstance(seen, _TEMPORARY) or is_conflict(seen) or is_outage(seen):
            return seen
        seen = seen.__cause__
    return None


_TEMPORARY = (TemporaryFailure, LedgerUnavailable, OperationalError, InterfaceError)


def _has_not_begun(error: BaseException) -> bool:
    """Whether the run came to nothing for a reason that was none of its own: R33 counts no attempt."""
    refused = isinstance(error, CallFailed) and error.code in _REFUSED_HERE
    return refused or isinstance(error, AccountRefused | Unreadable)


def _is_hopeless(error: CallFailed) -> bool:
    """Whether the other side's refusal would be the same next time, e.g. of a field that it does not know."""
    if isinstance(error, AccountRefused):
        return False
    report = error.report
    return report is not None and report.attempts > 0 and report.outcome is Outcome.FATAL


def _verdict(error: BaseException) -> dict[str, str]:
    if isinstance(error, CallError):
        error = problem.from_call_error(error)
    if isinstance(error, APIException):
        body = problem.body_of(error)
        return {"code": str(body["code"]), "detail": str(body["detail"])}
    return {"code": GAVE_UP, "detail": ""}


def _describe(error: BaseException | None) -> str:
    if error is None:
        return ""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - an error that cannot say what it is has ended the run all the same
        return name
