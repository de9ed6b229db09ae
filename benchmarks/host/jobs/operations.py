"""Ours: the row is the queue."""

from typing import Any

from benchmarks.host.jobs.work import job
from idempotency.ledger import Claim
from idempotency.operations import defer, operation


@operation("benchmark.job")
def run(*, claim: Claim, input: Any) -> dict[str, Any]:  # noqa: A002
    """Do the job."""
    job(input["number"])
    return {}


def send(number: int) -> None:
    """Promise the job in the transaction that is open."""
    defer("benchmark.job", {"number": number})
