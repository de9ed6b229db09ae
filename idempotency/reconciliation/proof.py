"""Write down what a look-up proved, and raise what it found twice (R39)."""

from idempotency.ledger import history, lookups
from idempotency.ledger.evidence import Snapshot
from idempotency.ledger.phases import Phases
from idempotency.reconciliation.findings import Findings
from idempotency.types import News


def record(phases: Phases, *, seen: Snapshot, findings: Findings) -> int | None:
    """Write it in the open phase; return the journal's new version, or None where key or journal have moved since."""
    connection = phases.connection
    version = lookups.record_proof(
        connection=connection, seen=seen, applied=findings.applied, ended=findings.ended
    )
    if version is None:
        return None
    for again, first in findings.again.items():
        # A watched key is asked about many times, and an event may have been first.
        if not history.was_raised(connection=connection, key_id=seen.id, reference=again):
            history.late_news(
                connection=connection,
                key_id=seen.id,
                state=seen.state,
                actor="reconciler",
                detail={"gateway_reference": again, "our_books_said": f"it happened as {first}"},
                news=News.TWICE,
            )
    return version
