"""Every error that this package raises on purpose. Pure Python: no Django, no DRF, so that any program can catch them.

Above the guard, code reads only three endings of an outside call: `CallRejected`, `CallFailed`, `CallUnknown`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idempotency.types import CallReport


class IdempotencyError(Exception):
    """The root of everything raised here."""


# -- how an outside call ended ---------------------------------------------------------------------------------------


class CallError(IdempotencyError):
    """An outside call did not give an answer to go on with.

    Attributes:
        code: a stable word for programs, e.g. `circuit-open`, `card_declined`.
        detail: one sentence for people, without secrets.
        report: what the guard saw (attempts, time, last error), or None when no guard was involved.
    """

    code = "call-error"

    def __init__(
        self, detail: str = "", *, code: str | None = None, report: "CallReport | None" = None
    ) -> None:
        super().__init__(detail or self.__class__.__name__)
        self.detail = detail
        self.code = code or self.code
        self.report = report


class CallRejected(CallError):
    """The other side understood and refused: a business "no", e.g. a declined card. It certainly did not happen.

    Attributes:
        reference: the other side's id for the refused attempt, or "".
        record: the other side's answer as JSON, kept as evidence and returned again by a resumed run.
    """

    code = "call-rejected"

    def __init__(
        self,
        detail: str = "",
        *,
        code: str | None = None,
        reference: str = "",
        record: Mapping[str, Any] | None = None,
        report: "CallReport | None" = None,
    ) -> None:
        super().__init__(detail, code=code, report=report)
        self.reference = reference
        self.record = dict(record or {})


class CallFailed(CallError):
    """The call certainly changed nothing: not sent, refused by a breaker, or refused by a stated "not executed".

    Attributes:
        retry_after: seconds after which trying again makes sense, or None.
        sent: whether a request may have reached the other side (it then said "not executed").
    """

    code = "call-failed"

    def __init__(
        self,
        detail: str = "",
        *,
        code: str | None = None,
        retry_after: float | None = None,
        sent: bool = False,
        report: "CallReport | None" = None,
    ) -> None:
        super().__init__(detail, code=code, report=report)
        self.retry_after = retry_after
        self.sent = sent


class AccountRefused(CallFailed):
    """The other side refuses us and not this call, e.g. by a 401 of our credentials: it certainly changed nothing.

    Every call would be refused until somebody repairs that, so deferred work waits for it and spends no attempt (R33).

    Attributes:
        retry_after: seconds until that is tried again.
    """

    def __init__(
        self,
        detail: str = "",
        *,
        code: str | None = None,
        retry_after: float = 300.0,
        report: "CallReport | None" = None,
    ) -> None:
        super().__init__(detail, code=code, retry_after=retry_after, sent=True, report=report)


class CallUnknown(CallError):
    """The call may have been executed and nobody knows yet. Never a "no"."""

    code = "outcome-unknown"


class TemporaryFailure(IdempotencyError):
    """Raised by a deferred handler: nothing happened, try again later.

    Attributes:
        retry_after: seconds to wait at least, or None for the policy's own pause.
    """

    def __init__(self, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Cancelled(IdempotencyError):
    """Deferred work was cancelled while it waited; nothing happened."""


class MessageRefused(IdempotencyError):
    """A message can neither be worked on now nor counts as done.

    Attributes:
        code: `in-progress` (another copy is being worked on), `outcome-unknown`, or `key-reused` (its id stands for
            another message).
    """

    def __init__(self, detail: str, *, code: str) -> None:
        super().__init__(detail)
        self.code = code


class OptimisticConflict(IdempotencyError):
    """Somebody else changed the row first: re-read and recompute the whole unit of work, never repeat the statement."""


class PartialEffect(IdempotencyError):
    """Some of the work was applied before it failed: repeating it would apply that part twice."""


class Refused(IdempotencyError):
    """The server turned the work away before beginning it: nothing ran, and no key was touched.

    Attributes:
        code: `overloaded`, `no-time` or `read-only`.
        detail: one sentence for people.
        retry_after: seconds after which trying again makes sense.
    """

    def __init__(self, detail: str, *, code: str, retry_after: float) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.retry_after = retry_after


# -- the ledger ------------------------------------------------------------------------------------------------------


class NotProven(IdempotencyError):
    """What a person has read at the other side cannot be so; the message says why, for that person."""


class Fenced(IdempotencyError):
    """The key has a new owner or a new state: this process may write nothing more to it."""


class LedgerUnavailable(IdempotencyError):
    """The ledger could not be asked; nothing was run."""


# -- used wrongly ----------------------------------------------------------------------------------------------------


class Misuse(IdempotencyError, RuntimeError):
    """The package is used in a way that cannot keep its promise; the message says what to change."""


class Unreadable(Misuse, TemporaryFailure):
    """What is stored was sealed under a key that this process does not have: another one may have it."""


class OutsideCallInTransaction(Misuse):
    """An outside call was made inside a caller's own `atomic()`: its claim could not commit first."""


class UnjournalledCall(Misuse):
    """A guarded call with an effect was made without a journal row: its outcome could be lost."""
