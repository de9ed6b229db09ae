"""What the caller of deferred work can see of it, and the one thing they can do: cancel it (R31, R34)."""

import math
import uuid
from datetime import UTC, datetime
from typing import Any

from django.db import connections
from rest_framework.exceptions import NotFound

from idempotency import telemetry
from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.exceptions import Cancelled
from idempotency.http import problem
from idempotency.ledger import due, work
from idempotency.ledger.acquire import Won
from idempotency.ledger.claim import Claim
from idempotency.ledger.phases import phase
from idempotency.ledger.values import Settlement
from idempotency.ledger.work import View
from idempotency.operations.ids import was_made_for
from idempotency.operations.settler import CANCELLED, tell_ended
from idempotency.resilience import Bulkhead, Deadline
from idempotency.types import State

WAIT_AT_MOST = 20.0
"""Seconds for which a poll may be held open."""
_POLLS = (0.1, 0.2, 0.5, 1.0)
"""Seconds between the looks of a poll that waits; the last one repeats."""
_waiting = Bulkhead(name="operations-waiting", limit=8)
"""Polls held open at once, per process: one more is answered at once, so that none takes the last thread."""


def find(*, id: uuid.UUID, scope: str, wait: float = 0) -> View:  # noqa: A002 - the route's own word
    """Return an operation of that scope, if need be once it is done or `wait` seconds are over.

    Looking changes nothing, and asks nobody outside.

    Raises:
        NotFound: it never was, or is somebody else's.
        ResultExpired: it was this caller's and has been purged.
    """
    view = _look(id, scope)
    if view.state is State.COMPLETED or wait <= 0 or not _waiting.enter():
        return view
    try:
        return _wait(id, scope, Deadline.after(min(wait, WAIT_AT_MOST)))
    finally:
        _waiting.leave()


def _wait(id: uuid.UUID, scope: str, until: Deadline) -> View:  # noqa: A002
    looks = 0
    while True:
        # No connection is held while nothing is asked.
        connections[conf.DATABASE].close()
        SYSTEM.wait(None, min(_POLLS[min(looks, len(_POLLS) - 1)], max(0.0, until.left())))
        looks += 1
        view = _look(id, scope)
        if view.state is State.COMPLETED or until.expired:
            return view


def _look(id: uuid.UUID, scope: str) -> View:  # noqa: A002
    view = work.view(connection=connections[conf.DATABASE], id=id, scope=scope)
    if view is not None:
        return view
    if was_made_for(id, scope=scope):
        raise problem.ResultExpired("The operation was settled so long ago that it is forgotten.")
    raise NotFound


# -- cancel ------------------------------------------------------------------------------------------------------------


def cancel(*, id: uuid.UUID, scope: str, by: str) -> View:  # noqa: A002
    """End work that waits and of which nothing can have happened; doing it twice is a success.

    Raises:
        TooLate: it has begun, or is over.
        NotFound, ResultExpired: as for `find`.
    """
    view = _look(id, scope)
    with phase(using=conf.DATABASE) as phases:
        token = due.cancel(
            connection=phases.connection, key_id=view.key_id, settlement=Settlement(by=by)
        )
        if token is not None:
            ended = {"code": CANCELLED, "detail": "It was cancelled while it waited."}
            work.record(connection=phases.connection, id=id, ended=work.Conclusion(error=ended))
            won = Won(view.key_id, view.identity, token, view.generation, fresh=False)
            claim = Claim(identity=view.identity, phases=phases, won=won)
            tell_ended(claim=claim, name=view.name, error=Cancelled())
    if token is not None:
        telemetry.emit(
            telemetry.OperationMoved(view.name, CANCELLED, view.attempts, str(view.key_id))
        )
    view = _look(id, scope)
    if view.error is None or view.error.get("code") != CANCELLED:
        raise problem.TooLate
    return view


# -- what it looks like ------------------------------------------------------------------------------------------------


def representation(view: View) -> dict[str, Any]:
    """Return the operation as its caller sees it."""
    seen: dict[str, Any] = {
        "id": str(view.id),
        "operation": view.name,
        "state": view.state.value,
        "done": view.state is State.COMPLETED,
        "attempts": view.attempts,
        "created_at": _moment(view.created_at),
        "updated_at": _moment(view.updated_at),
    }
    if view.due_at is not None:
        seen["retry_at"] = _moment(view.due_at)
    if view.error is not None:
        seen["error"] = dict(view.error)
    elif view.has_result:
        seen["result"] = view.result
    return seen


def retry_after(view: View) -> int | None:
    """Return after how many whole seconds something can be new; None where nothing will be."""
    if view.state is State.COMPLETED:
        return None
    return max(1, math.ceil(view.next_in or 0))


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
