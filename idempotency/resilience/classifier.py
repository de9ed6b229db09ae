"""What a failed attempt means: the one place where errors are classified.

The guard's `series` is its only caller. Above the guard, code reads `CallRejected`, `CallFailed`,
`CallUnknown`.
"""

from dataclasses import dataclass

from idempotency.clock import SYSTEM, Clock
from idempotency.resilience.registry import row_of_sign
from idempotency.resilience.signs import http_status, inner_of, retry_after, signs_of
from idempotency.resilience.table import UNRECOGNISED, Declared, Evidence, Row, Vote
from idempotency.types import Outcome

_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class Classification:
    """What is known about one attempt."""

    outcome: Outcome
    reason: str
    """The row's word."""
    sent: bool
    """Whether a byte of the request may have left."""
    maybe_applied: bool
    """Whether it may have taken effect: apart from `outcome`, since *fatal* only says "stop"."""
    vote: Vote
    cancelled: bool
    retry_after: float | None
    """The other side's valid word, in seconds."""


_ANSWERED = Classification(
    outcome=Outcome.SUCCESS,
    reason="answered",
    sent=True,
    maybe_applied=True,
    vote=Vote.SUCCESS,
    cancelled=False,
    retry_after=None,
)


def classify(
    met: object,
    *,
    bytes_may_have_left: bool | None = None,
    declares: Declared = frozenset(),
    clock: Clock = SYSTEM,
) -> Classification:
    """Say what an error, or an answer, of one attempt means.

    Only an HTTP library's response that reports an error is an answer that is no success.
    `bytes_may_have_left` is the transport's fact; None where no transport told it.
    """
    if not isinstance(met, BaseException) and (http_status(met) or 200) < 400:
        return _ANSWERED
    row = _row_of(met) or UNRECOGNISED
    outcome, says = row.outcome, row.says
    if row.if_declared and not _is_declared(met, declares):
        outcome, says = Outcome.AMBIGUOUS, Evidence.NOTHING
    outcome, says = _with_the_fact(outcome, says, bytes_may_have_left)
    return Classification(
        outcome=outcome,
        reason=row.reason,
        sent=says is not Evidence.NOT_SENT and bytes_may_have_left is not False,
        maybe_applied=says in (Evidence.NOTHING, Evidence.MAYBE_EXECUTED),
        vote=row.vote,
        cancelled=row.cancels,
        retry_after=retry_after(met, now=clock.wall()),
    )


def _row_of(met: object, *, depth: int = 0) -> Row | None:
    row = next((row for sign in signs_of(met) if (row := row_of_sign(sign))), None)
    if not isinstance(met, BaseException) or row is None or not row.look_inside:
        return row
    # Only of a known wrapper does the context count: any other error may have been raised while
    # something else was being handled.
    inner = met.__cause__ if row is UNRECOGNISED else inner_of(met)
    found = _row_of(inner, depth=depth + 1) if inner is not None and depth < _DEEPEST else None
    if found is None or found is UNRECOGNISED:
        return row
    # What failed while it connected has sent nothing, whatever it failed of.
    connecting = row.says is Evidence.NOT_SENT and found.says is not Evidence.NOT_SENT
    return row if connecting else found


def _is_declared(met: object, declares: Declared) -> bool:
    declared = {f"http:{word}" if isinstance(word, int) else f"grpc:{word}" for word in declares}
    return not declared.isdisjoint(signs_of(met))


def _with_the_fact(
    outcome: Outcome, says: Evidence, bytes_may_have_left: bool | None
) -> tuple[Outcome, Evidence]:
    """Let the transport's fact win over what the error's name suggests."""
    if says is Evidence.NOT_SENT and bytes_may_have_left:
        return (Outcome.AMBIGUOUS if outcome is Outcome.TRANSIENT else outcome), Evidence.NOTHING
    if says is Evidence.NOTHING and bytes_may_have_left is False:
        return (Outcome.TRANSIENT if outcome is Outcome.AMBIGUOUS else outcome), Evidence.NOT_SENT
    return outcome, says
