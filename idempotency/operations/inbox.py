"""Messages and tasks are keys too: processed once, in the transaction of their effect (R40).

    with consume(source="stripe", message_id=event["id"]) as claim:
        if claim is not None:
            apply(event)

A failed block leaves the id free. Inside it everything works as in a view's handler: `claim.outside_call`, `defer`.
"""

import functools
import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, assert_never

from idempotency import telemetry
from idempotency.conf import conf
from idempotency.exceptions import MessageRefused, Misuse
from idempotency.execution import settling
from idempotency.ledger import acquire, lookups, owed, settlement, storable, values
from idempotency.ledger.claim import Claim
from idempotency.ledger.phases import Phases
from idempotency.operations import wake
from idempotency.types import Answer

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

OPERATION = "inbox"
_MAX_ID = 255
_MAX_SOURCE = 200


@contextmanager
def consume(
    source: str,
    message_id: str,
    *,
    fingerprint: bytes = b"",
    operation: str = OPERATION,
    message: bytes = b"",
) -> Iterator[Claim | None]:
    """Work on a message once: the block's effects and the memory of the message commit together.

    Gives the claim, or None where the message has been processed before: then the block must do nothing. The memory
    lasts for `KEY_TTL`, which must outlive the sender's retries.

    Args:
        source: who sent it; ids are unique per source.
        message_id: the sender's id, the same in every copy; 1 to 255 characters.
        fingerprint: the message's bytes, where the sender might use an id twice.
        operation: a permanent name under which staff find such messages, and a resolver is registered.
        message: the message as it came; it is kept as an answer would be, so that staff can have it run again by the
            `message_handler` of its source.

    Raises:
        MessageRefused: another copy is being worked on, or its outcome is not known: let the sender repeat it.
        Misuse: made inside a transaction, or the id cannot be kept.
    """
    fits = 1 <= len(message_id) <= _MAX_ID and 1 <= len(source) <= _MAX_SOURCE
    if not fits or storable.text(source + message_id) != source + message_id:
        raise Misuse(
            "A message needs a source of 1 to 200 and an id of 1 to 255 characters of text."
        )
    identity = values.Identity(scope=source, operation=operation, key=message_id)
    owed.pay()
    phases = Phases(using=conf.DATABASE)
    try:
        phases.open()
        found = acquire.acquire(
            phases=phases, identity=identity, fingerprint=_Digest.of(fingerprint)
        )
        if isinstance(found, acquire.Won):
            claim = Claim(identity=identity, phases=phases, won=found)
            with settling(claim=claim, settler=_MessageSettler(message)):
                yield claim
            return
        phases.roll_back()
        _refuse_unless_done(found)
        telemetry.emit(telemetry.KeyMet(operation, "replay"))
        yield None
    finally:
        if phases.is_open:
            phases.roll_back()


def idempotent_task(
    *, key: Callable[..., str] | None = None, source: str = ""
) -> Callable[[Callable[P, T]], Callable[P, T | None]]:
    """Let a Celery task, or any function, do its work once per key; repeats return None.

        @shared_task
        @idempotent_task(key=lambda order_id: str(order_id))
        def capture(order_id): ...

    Args:
        key: makes the key of the arguments; default: the id of the Celery message, which a redelivery keeps. What one
            message calls more than once needs a key.
        source: the scope of its keys; default: the function's module and name.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T | None]:
        scope = source or f"{function.__module__}.{function.__qualname__}"

        @functools.wraps(function)
        def once(*args: P.args, **kwargs: P.kwargs) -> T | None:
            message_id = key(*args, **kwargs) if key is not None else wake.current_message_id()
            if not message_id:
                raise Misuse(f"{scope}: outside a Celery task give @idempotent_task a key.")
            with ExitStack() as stack:
                try:
                    claim = stack.enter_context(consume(scope, message_id, operation="task"))
                except MessageRefused as refused:
                    if refused.code != "in-progress":
                        raise
                    logger.info("%s: another copy of %s is being worked on", scope, message_id)
                    return None
                return None if claim is None else function(*args, **kwargs)

        return once

    return decorate


def _refuse_unless_done(found: values.Replay | values.Refusal) -> None:
    match found:
        case values.Replay() | values.ResultUnavailable() | values.ResultExpired():
            return
        case values.InProgress():
            raise MessageRefused("Another copy is being worked on.", code="in-progress")
        case values.StillUnknown():
            raise MessageRefused("What it led to is not known yet.", code="outcome-unknown")
        case values.Reused():
            raise MessageRefused("Its id stands for another message.", code="key-reused")
        case _:
            assert_never(found)


@dataclass(frozen=True, slots=True)
class _Digest:
    """The fingerprint of a message: its bytes, without a secret, for they came from outside as they are."""

    digest: bytes

    @classmethod
    def of(cls, message: bytes) -> "_Digest":
        return cls(hashlib.sha256(message).digest())

    @property
    def current(self) -> tuple[int, str, bytes]:
        return 0, "", self.digest

    def parts(self) -> bytes:
        return b""

    def matches(self, *, version: int, secret_name: str, digest: bytes) -> bool:
        return (version, secret_name, digest) == self.current

    def differing(self, parts: bytes, *, version: int, secret_name: str) -> list[str]:
        return ["message"]


class _MessageSettler:
    """Writes the endings of one message. It has no answer: that it is done is kept, and what it said."""

    _settlement = values.Settlement(by="message")

    def __init__(self, message: bytes) -> None:
        kept = message if len(message) <= conf.MAX_RESPONSE_BYTES else b""
        self._answer = Answer(status=204, body=kept, content_type="")

    def is_failure(self, value: Any) -> bool:
        return False

    def completed(self, claim: Claim, value: Any) -> bool:
        if claim.promised is not None:
            raise Misuse("accept() answers a request; inside a message or a task use defer().")
        return settlement.complete(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            answer=self._answer,
            settlement=self._settlement,
            called=claim.may_have_called(),
            about=claim.about,
            draft=claim.draft,
            written=claim.written,
        )

    def is_final(self, error: BaseException) -> bool:
        return False

    def refused(self, claim: Claim, error: BaseException) -> bool:
        return False

    def undone(self, claim: Claim, error: BaseException | None) -> bool:
        wrote = settlement.release(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            settlement=self._settlement,
        )
        if wrote:
            lookups.watch(
                connection=claim.phases.connection, key_id=claim.id, after=conf.RECONCILE_EVERY
            )
        return wrote
