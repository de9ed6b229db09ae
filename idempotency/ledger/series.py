"""A series of sends: what it repeats, under which downstream key, and what its end is evidence of (R22, R23)."""

import json
from collections.abc import Mapping
from typing import Any

from idempotency.exceptions import CallError, CallFailed, CallRejected, CallUnknown, Misuse
from idempotency.ledger.journal import Recorded, StepEnding
from idempotency.types import Downstream, Ending, OutsideResult


def freeze(request: bytes | Mapping[str, Any]) -> bytes:
    """Return a request as the bytes that every send of the step repeats.

    Raises:
        Misuse: it holds a value that JSON cannot carry exactly.
    """
    if isinstance(request, bytes):
        return request
    try:
        return json.dumps(request, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise Misuse(f"An outside request must be bytes or plain JSON: {error}") from error


def next_rotation(earlier: Recorded | None, downstream: Downstream) -> int:
    """Return under which downstream key the step may be sent now (R23).

    It changes only after the other side itself said "no", or, past its memory, when nothing of the old one can be left.

    Raises:
        CallUnknown: it may be sent under no key at all; a person has to look.
    """
    if earlier is None:
        return 0
    if earlier.refused:
        return earlier.rotation + 1
    if earlier.is_open and not downstream.keyed:
        raise CallUnknown(
            "An earlier send may have been applied, and the other side honours no keys.",
            code="resend-forbidden",
        )
    if earlier.may_resend:
        return earlier.rotation
    if earlier.is_open:
        raise CallUnknown(
            "The other side has forgotten this key, and an earlier send may have been applied.",
            code="resend-forbidden",
        )
    return earlier.rotation + 1


def applied(result: OutsideResult, *, sends: int) -> StepEnding:
    """Return the ending of a call that gave this result.

    Raises:
        TypeError: it is none; what it was is for a look-up to say.
    """
    if not isinstance(result, OutsideResult):
        raise TypeError(f"A sender must return an OutsideResult, not {type(result).__name__}.")
    # A sender without a guard announces no sends: it has made one.
    return StepEnding(Ending.APPLIED, max(1, sends), str(result.reference), result.record)


def ending_of(error: BaseException, *, sends: int) -> StepEnding:
    """Translate how the guarded call ended into evidence; what nobody had foreseen is ambiguous."""
    report = error.report if isinstance(error, CallError) else None
    attempts = report.attempts if report else sends
    text = f"{type(error).__name__}: {_words(error)}"[:500]
    match error:
        case CallRejected():
            return StepEnding(
                Ending.REJECTED, attempts, error.reference, error.record, error.detail, error.code
            )
        case CallFailed():
            how = Ending.NOT_APPLIED if error.sent else Ending.NOT_SENT
            return StepEnding(how, attempts, error=text)
        case _:
            return StepEnding(Ending.AMBIGUOUS, attempts, error=text)


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - what it came to counts, not what it cannot say
        return "it has no words"
