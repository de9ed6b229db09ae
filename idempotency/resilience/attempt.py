"""What a sender is given for one attempt, and the journal that has to stand behind it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from idempotency.resilience.deadline import Deadline

BeforeSend = Callable[[], None]

_ATTEMPT: ContextVar["Attempt | None"] = ContextVar("idempotency_attempt", default=None)
_JOURNAL: ContextVar["Journal | None"] = ContextVar("idempotency_journal", default=None)


@dataclass(slots=True)
class Attempt:
    """One try of a call on the wire: how long it may take, and whether it has begun to act.

    A transport sets `bytes_may_have_left` to False when it takes the request, and to True just
    before the first byte of it can leave. None means that no transport has said anything, which
    counts as "may have left" for everything but an error that itself says otherwise.
    """

    number: int
    """From 1."""
    deadline: Deadline
    """Ends the attempt, whatever the peer does."""
    bytes_may_have_left: bool | None = None

    @property
    def timeout(self) -> float:
        """Seconds left for this attempt: what to give a client that only knows durations."""
        return max(self.deadline.left(), 0.0)


@dataclass(frozen=True, slots=True)
class Journal:
    """What stands behind a call with an effect."""

    before_send: BeforeSend
    """The last check before each send; raises where there must be none."""
    keyed: bool
    """Whether the other side honours keys, as its journal row says."""


def current_attempt() -> Attempt | None:
    """Return the attempt that this context makes, or None outside a guarded call."""
    return _ATTEMPT.get()


@contextmanager
def attempt_scope(attempt: Attempt) -> Generator[None, None, None]:
    """Make it the context's attempt, so that a transport finds its deadline and tells the fact."""
    token = _ATTEMPT.set(attempt)
    try:
        yield
    finally:
        _ATTEMPT.reset(token)


def current_journal() -> Journal | None:
    """Return what stands behind a call that is made here, or None where no journal row does."""
    return _JOURNAL.get()


@contextmanager
def journalled(before_send: BeforeSend, *, keyed: bool = True) -> Generator[None, None, None]:
    """Let guarded calls with an effect be made here: their intent is on record.

    `before_send` is called immediately before each send. It raises when this process must not send
    any more (superseded, deadline over): then the send does not happen. `keyed` says whether the
    other side honours keys: where it does not, no guard repeats what may have been executed,
    whatever the guard was told itself.
    """
    token = _JOURNAL.set(Journal(before_send, keyed))
    try:
        yield
    finally:
        _JOURNAL.reset(token)
