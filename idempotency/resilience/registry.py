"""Errors that hosts teach the classifier, beside the built-in table."""

from idempotency.resilience.table import TABLE, Evidence, Row, Vote
from idempotency.types import Outcome

_BUILT_IN = {sign: row for rows in TABLE.values() for row in rows for sign in row.signs}
_REGISTERED: dict[str, Row] = {}


def row_of_sign(sign: str) -> Row | None:
    """Return the row that a sign stands in: a host's first, then the table's."""
    return _REGISTERED.get(sign) or _BUILT_IN.get(sign)


def register_error(
    error: type[BaseException] | str,
    *,
    reason: str,
    outcome: Outcome,
    says: Evidence = Evidence.NOTHING,
    vote: Vote = Vote.FAILURE,
) -> None:
    """Teach the classifier an error of the host, by class, or by a sign where it is not installed.

    Subclasses are covered. An entry wins over the built-in table and over a former entry.

    Raises:
        ValueError: `transient` means "certainly not executed": `says` must not contradict it.
    """
    if outcome is Outcome.TRANSIENT and says not in (Evidence.NOT_SENT, Evidence.NOT_EXECUTED):
        raise ValueError("a transient error is certainly not executed: pass what it says")
    sign = error if isinstance(error, str) else f"{error.__module__}.{error.__qualname__}"
    _REGISTERED[sign] = Row(outcome, says, vote, reason, (sign,))
