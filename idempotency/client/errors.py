"""How a call ends that has no final answer; `CallFailed` (certainly nothing happened) is the package's own."""

from idempotency.exceptions import CallUnknown, IdempotencyError, Misuse
from idempotency.types import CallReport


class StillOpen(CallUnknown):
    """Nobody knows yet whether it happened. Call again with the same intent; never under another one.

    Attributes:
        intent: its name; the key is kept under it.
        retry_after: the server's last word in seconds, or None.
        operation_ref: what to show to the server's support, or "".
    """

    def __init__(
        self,
        detail: str,
        *,
        intent: str,
        code: str | None = None,
        retry_after: float | None = None,
        operation_ref: str = "",
        report: CallReport | None = None,
    ) -> None:
        super().__init__(detail, code=code, report=report)
        self.intent = intent
        self.retry_after = retry_after
        self.operation_ref = operation_ref


class IntentChanged(Misuse):
    """The intent was begun with another request: give what is to be done now a name of its own."""


class IntentsUnavailable(IdempotencyError):
    """The intents can be neither read nor written: a full disk, a damaged file, a lock that lasts too long.

    A call that raises it has sent nothing; what earlier ones have sent is not known.
    """


class NotRenewable(IdempotencyError):
    """A new key could do the work of the old one twice, so none is made."""
