"""Everything whose turn it is, in one bounded batch."""

import logging
import uuid

from django.db import Error, connections

from idempotency.conf import conf
from idempotency.ledger import lookups, owed, settlement
from idempotency.reconciliation.later import put_off
from idempotency.reconciliation.report import Report
from idempotency.reconciliation.single import note, reconcile
from idempotency.resilience import Deadline

logger = logging.getLogger(__name__)

SECONDS = 15.0
"""After which a batch begins no further key: with one more look-up and its settlement it ends within a task's hard
limit, also where the other side is slow and yet answers, which opens no breaker."""


def run(*, limit: int | None = None, dry_run: bool = False) -> list[Report]:
    """Reconcile the keys whose turn it is, in a batch that is bounded in number and time; return what came of each."""
    limit = limit or conf.RECONCILE_BATCH
    connection = connections[conf.DATABASE]
    if dry_run:
        return [_dry(key_id) for key_id in lookups.due(connection=connection, limit=limit)]
    owed.pay()
    lookups.note_the_dead(connection=connection)
    settlement.lapse(connection=connection, limit=limit)
    reports: list[Report] = []
    until = Deadline.after(SECONDS)
    # One by one: a reconciler that dies keeps the others from a single key, and no longer than a look-up may take.
    while len(reports) < limit and (key_id := _next()) is not None:
        reports.append(_safely(key_id))
        if until.expired:
            break
    return reports


def _next() -> uuid.UUID | None:
    return lookups.take_due(connection=connections[conf.DATABASE], turn=conf.REQUEST_BUDGET)


def _safely(key_id: uuid.UUID) -> Report:
    """Reconcile one key of a batch; what goes wrong with it must not stop the others."""
    try:
        return reconcile(key_id=key_id)
    except Exception as error:
        logger.exception("Key %s could not be reconciled", key_id)
        # An outage of ours ages no key; an error that nobody had foreseen would come back for ever, and call nobody.
        put_off(key_id, answered=not isinstance(error, Error))
        report = Report(key_id, "unreachable", None, f"{type(error).__name__}: {error}")
        note(report)
        return report


def _dry(key_id: uuid.UUID) -> Report:
    """Say what a look-up would find, and write nothing."""
    seen = lookups.snapshot(connection=connections[conf.DATABASE], key_id=key_id)
    if seen is None:
        return Report(key_id, "moved", None)
    words = [
        f"{s.name}: {'applied' if s.result else 'open' if s.is_open else 'ended'}"
        for s in seen.steps
    ]
    return Report(
        key_id, "would-ask" if seen.is_open else "would-settle", seen.state, "; ".join(words)
    )
