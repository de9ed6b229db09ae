"""One operation on its way: what an answer means, and what comes next.

Without input or output of its own, so that both clients decide alike. Errors are classified by the guard, by the same
table as the server's own calls; here only the server's word is read.
"""

import enum
from typing import Any

from idempotency.client.answer import Answer
from idempotency.client.errors import StillOpen
from idempotency.client.intents import Intent
from idempotency.clock import Clock
from idempotency.exceptions import CallFailed, CallUnknown, TemporaryFailure
from idempotency.resilience import Deadline, RetryPolicy

REFUSALS = frozenset({400, 401, 403, 404, 405, 406, 408, 411, 413, 415, 425, 429})
"""Statuses that leave the key free at the server: the request may be corrected and sent again under it."""


_SET_BACK = 86_400.0
"""Seconds by which our clock may have been set back: as many as the memory of keys is told shorter than it is."""


class Meaning(enum.Enum):
    """What a whole answer says about the operation."""

    FINAL = "the operation's own answer"
    REFUSED = "not begun, and the key is free"
    WAIT = "begun, and not over: ask again with the same key"
    AGAIN = "not begun, and worth another try"
    REUSED = "something else was done under the key"
    UNCLEAR = "for the table of failures to decide"


def meaning(answer: Answer) -> Meaning:
    """Say what an answer means, by the problem's code first, then by its status."""
    code = answer.code
    if code == "key-reused":
        return Meaning.REUSED
    if code in ("in-progress", "outcome-unknown"):
        return Meaning.WAIT
    if code == "throttled" or _is_ours_to_repeat(answer):
        return Meaning.AGAIN
    if answer.status == 409 and not code and "retry-after" in answer.headers:
        # Another server's way to say it: only what is under way is worth waiting for.
        return Meaning.WAIT
    if answer.status >= 500 or answer.status in (408, 425, 429):
        return Meaning.UNCLEAR
    if answer.status in REFUSALS or 300 <= answer.status < 400:
        return Meaning.REFUSED
    return Meaning.FINAL


def _is_ours_to_repeat(answer: Answer) -> bool:
    """Whether the server says that it did nothing, and to come again.

    `retryable` is no word of this server only: a network in between says it, too, with its own 502, 504 or 524, of what
    the server may have done. The server says it with a code, and with a status by which nothing was begun.
    """
    nothing_begun = answer.status == 503 or answer.status in REFUSALS
    return nothing_begun and bool(answer.code) and answer.problem.get("retryable") is True


def seen(answer: Answer, raw: object, *, clock: Clock) -> object:
    """Return a read's answer, or what the guard is to classify.

    Raises:
        TemporaryFailure: it is to come again.
        ValueError: it is not whole.
    """
    match meaning(answer):
        case Meaning.AGAIN:
            raise TemporaryFailure(answer.code, retry_after=answer.wait(now=clock.wall()))
        case Meaning.UNCLEAR:
            return raw
        case Meaning.FINAL:
            answer.require_whole()
            return answer
        case _:
            return answer


class Course:
    """What has happened to one intent in this call so far."""

    def __init__(self, intent: Intent, *, policy: RetryPolicy, clock: Clock) -> None:
        self.intent = intent
        self._policy, self._clock = policy, clock
        self._sends = 0
        self._denied = 0
        self._waits = 0
        self._last: Answer | None = None

    def require_known(self, key_memory: float) -> None:
        """Refuse to send under a key that the server may have forgotten: it would be a new operation.

        Raises: StillOpen; a person has to look.
        """
        age = self._clock.wall() - self.intent.begun_at
        if age > key_memory or age < -_SET_BACK:
            raise StillOpen(
                f"{self.intent.name!r} was begun so long ago, or our clock was set back so far since, that its key may "
                "be forgotten: sending it could do it again. Look at the server whether it was done.",
                intent=self.intent.name,
                code="too-old",
            )

    def before_send(self) -> None:
        """Count a send: the intent is on disk, which is the journal that a guarded call asks for."""
        self._sends += 1

    def take(self, answer: Answer, raw: object) -> object:
        """Return the answer, or what the guard is to classify.

        Raises:
            TemporaryFailure: the server said that it did nothing, and to come again.
            ValueError: it is not whole, so that it may be done.
        """
        self._last = answer
        if meaning(answer) is Meaning.AGAIN:
            self._denied += 1
        return seen(answer, raw, clock=self._clock)

    def pause(self, answer: Answer, deadline: Deadline) -> float | None:
        """Return the seconds before the next look at what is under way; None where the answer is the last.

        Raises:
            StillOpen: there is no time to wait so long, or the key means something else.
        """
        match meaning(answer):
            case Meaning.REUSED:
                raise self._still_open("the key was used for another request")
            case Meaning.WAIT:
                word = answer.wait(now=self._clock.wall())
                pause = self._policy.pause(self._waits, word=word, clock=self._clock)
                self._waits += 1
                if pause > deadline.left():
                    raise self._still_open("it is not over yet", retry_after=pause)
                return pause
            case _:
                return None

    def is_free(self, answer: Answer) -> bool:
        """Whether the answer leaves the key free, and nothing else can have happened under it."""
        return meaning(answer) is Meaning.REFUSED and self._nothing_before

    def is_final(self, answer: Answer) -> bool:
        """Whether the answer is to be kept."""
        return meaning(answer) is Meaning.FINAL

    def ended(self, error: CallFailed | CallUnknown) -> CallFailed | StillOpen:
        """Return what to raise for the guard's ending: what other sends may have done counts too.

        Raises: what stops the caller, as it is: the store knows that the intent is open.
        """
        if error.__cause__ is not None and not isinstance(error.__cause__, Exception):
            raise error.__cause__
        if isinstance(error, CallFailed) and self.intent.fresh and not self._waits:
            if self._last is not None and self._last.code:
                error.code = self._last.code
            return error
        retry_after = getattr(error, "retry_after", None)
        return self._still_open(error.detail, retry_after=retry_after, report=error.report)

    def shared(self) -> StillOpen:
        """Return what to raise where this call has done nothing, and another one with the same intent may have."""
        return self._still_open("another call with this intent may have been sent")

    @property
    def _nothing_before(self) -> bool:
        # The last send is the one whose answer is judged.
        return self.intent.fresh and self._sends == self._denied + 1

    def _still_open(self, why: str, **more: Any) -> StillOpen:
        last = self._last
        return StillOpen(
            f"{self.intent.name!r}: {why}. Call again with the same intent, never with another.",
            intent=self.intent.name,
            code=(last.code if last else "") or None,
            operation_ref=str(last.problem.get("operation_ref", "")) if last else "",
            **more,
        )
