"""Errors for the caller: RFC 9457 problems, each a plain DRF exception with a stable code.

A host that keeps its own exception handler loses nothing: every `Problem` is an `APIException` with
`default_code`, and `.wait`, from which DRF itself makes Retry-After.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from rest_framework.exceptions import APIException

from idempotency import exceptions
from idempotency.clock import SYSTEM, Clock
from idempotency.conf import conf
from idempotency.exceptions import CallError, CallFailed, CallRejected, CallUnknown
from idempotency.http.problem.entries import Entry
from idempotency.http.problem.published import BUILT_IN
from idempotency.types import State


class Problem(APIException):
    """The base of all problems that are raised here.

    Attributes:
        code: the published code; `default_code` of the class, or a more exact one.
        wait: whole seconds for Retry-After, at least 1, or None.
        members: what the body holds beside type, title, status, detail and code.
    """

    entry: ClassVar[Entry]

    def __init_subclass__(cls, *, code: str) -> None:
        cls.entry = BUILT_IN[code]
        cls.default_code = code
        cls.status_code = cls.entry.status
        cls.default_detail = cls.entry.when

    def __init__(
        self,
        detail: str | None = None,
        *,
        code: str | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
        safe_new_key: bool | None = None,
        operation_ref: str | None = None,
        resource: str | None = None,
        clock: Clock = SYSTEM,
        **members: object,
    ) -> None:
        super().__init__(detail, code)
        self.code = code or self.entry.code
        seconds = self.entry.retry_after if retry_after is None else retry_after
        self.wait = None if seconds is None else jittered(seconds, clock=clock)
        everything = {
            "retryable": self.entry.retryable if retryable is None else retryable,
            "safe_new_key": self.entry.safe_new_key if safe_new_key is None else safe_new_key,
            "operation_ref": operation_ref,
            "resource": resource,
            **members,
        }
        self.members = {name: value for name, value in everything.items() if value is not None}


class KeyMissing(Problem, code="key-missing"):
    """The endpoint requires a key and the request has none (R4); the body leads to the rules for keys."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, policy=policy_address())


class KeyInvalid(Problem, code="key-invalid"):
    """The key is not well formed (R3); the body leads to the rules for keys."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, policy=policy_address())


class KeyReused(Problem, code="key-reused"):
    """The key belongs to a request that differs (R9): says how far that one is, and in what."""

    def __init__(
        self,
        *,
        first: State,
        differing: Sequence[str] = (),
        operation_ref: str | None = None,
        resource: str | None = None,
    ) -> None:
        state = "settled" if first is State.COMPLETED else first.value
        parts = f" They differ in: {', '.join(differing)}." if differing else ""
        super().__init__(
            f"The key was used for another request, which is {_STATE_WORDS[first]}.{parts}",
            # A new key is a new operation: never while the outcome of this one is open.
            safe_new_key=first in (State.COMPLETED, State.RELEASED),
            operation_ref=operation_ref,
            resource=resource,
            operation_state=state,
            differing=list(differing) or None,
        )
        self.status_code = conf.MISMATCH_STATUS


class InProgress(Problem, code="in-progress"):
    """The first request with the key is still running (R10)."""


class OutcomeUnknown(Problem, code="outcome-unknown"):
    """Nobody knows yet whether it happened (R14): 504 to the first caller, 409 to a repeat."""

    def __init__(
        self,
        detail: str | None = None,
        *,
        repeated: bool,
        retry_after: float | None = None,
        operation_ref: str | None = None,
        resource: str | None = None,
    ) -> None:
        super().__init__(
            detail,
            retry_after=conf.RECONCILE_EVERY if retry_after is None else retry_after,
            operation_ref=operation_ref,
            resource=resource,
        )
        self.status_code = 409 if repeated else 504


class ResultUnavailable(Problem, code="result-unavailable"):
    """The work is done and its answer could not be kept (R17)."""


class ResultExpired(Problem, code="result-expired"):
    """The work is done and its answer is no longer kept (R20)."""


class NotDone(Problem, code="not-done"):
    """Staff closed the key on evidence that nothing happened (R37)."""


class TooLate(Problem, code="too-late"):
    """The operation can no longer be cancelled (R34)."""


class LedgerDown(Problem, code="ledger-unavailable"):
    """The ledger could not be asked; nothing was run (R19)."""


class Overloaded(Problem, code="overloaded"):
    """Too much is under way; nothing was run (R28, R29)."""


class NoTime(Problem, code="no-time"):
    """Too little time was left; nothing was run (R26)."""


class CircuitOpen(Problem, code="circuit-open"):
    """The breaker refused the call; nothing was run (R27)."""


class GatewayUnavailable(Problem, code="gateway-unavailable"):
    """The other system certainly did nothing (R14)."""


class ReadOnly(Problem, code="read-only"):
    """Writing is switched off (R30)."""


class Refused(Problem, code="call-rejected"):
    """The other system said no (R14), and the application has no problem of its own for it."""


class BodyInvalid(Problem, code="body-invalid"):
    """The body cannot be read, or not in one way only (R7)."""


class BodyUnreadable(Problem, code="body-unreadable"):
    """The body did not arrive whole (R7)."""


class BodyTooLarge(Problem, code="body-too-large"):
    """The body is beyond Django's limits for uploads."""


class LengthRequired(Problem, code="length-required"):
    """The body came without a word of its length, and DRF would read it as empty (R7)."""


ABOUT_KEYS = frozenset({"key-missing", "key-invalid"})
"""The codes whose bodies lead to the policy."""


def policy_address() -> str:
    """Return where the rules for keys are published: beside the pages of the problems.

    Source: draft-ietf-httpapi-idempotency-key-header-07 §2.3: a server must publish them.
    """
    return f"{conf.PROBLEM_BASE}policy/"


_STATE_WORDS = {
    State.COMPLETED: "settled",
    State.IN_PROGRESS: "still in progress",
    State.UNKNOWN: "unknown in its outcome",
    State.RELEASED: "known to have changed nothing",
}
_FAILURES: dict[str, type[Problem]] = {
    "circuit-open": CircuitOpen,
    "overloaded": Overloaded,
    "bulkhead-full": Overloaded,
    "no-time": NoTime,
}

_TURNED_AWAY: dict[str, type[Problem]] = {
    "overloaded": Overloaded,
    "no-time": NoTime,
    "read-only": ReadOnly,
}


def from_call_error(
    exc: CallError, *, operation_ref: str | None = None, resource: str | None = None
) -> Problem:
    """Return the problem that tells the caller how an outside call ended.

    The details of the call stay in the journal: what another system said is not for every caller.
    """
    if isinstance(exc, CallUnknown):
        return OutcomeUnknown(repeated=False, operation_ref=operation_ref, resource=resource)
    if isinstance(exc, CallRejected):
        code = None if exc.code == CallRejected.code else slug(exc.code)
        # Another system's words: a lone surrogate among them could not be sent.
        detail = exc.detail.encode(errors="replace").decode()
        return Refused(detail or None, code=code, resource=resource)
    retry_after = exc.retry_after if isinstance(exc, CallFailed) else None
    # The key is known and released, unlike where a request is refused before its key was read.
    return _FAILURES.get(exc.code, GatewayUnavailable)(
        retry_after=retry_after, safe_new_key=True, operation_ref=operation_ref, resource=resource
    )


def from_refusal(exc: exceptions.Refused) -> Problem:
    """Return the problem that tells the caller why the work was not begun (R29, R30)."""
    return _TURNED_AWAY[exc.code](exc.detail, retry_after=exc.retry_after)


def jittered(seconds: float, *, clock: Clock = SYSTEM) -> int:
    """Return whole seconds for Retry-After: at least 1 and what is asked, a little more at random.

    Callers that were turned away together come back apart.
    """
    least = max(1, math.ceil(seconds))
    return least + int(clock.uniform(0, 1 + least / 2))


def slug(code: Any) -> str:
    """Return a code in the form that is published: `card_declined` is `card-declined`."""
    return str(code).replace("_", "-")
