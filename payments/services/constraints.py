"""A constraint's name becomes a domain error."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import IntegrityError, transaction

from payments.exceptions import NotRefundable, OrderOpen, RefundTooLarge, Verdict

VERDICTS: Mapping[str, type[Verdict]] = {
    "payments_payment_one_open_per_order": OrderOpen,
    "payments_payment_refunded_was_captured": NotRefundable,
    "payments_payment_refunds_within_captured": RefundTooLarge,
}


@contextmanager
def verdicts() -> Iterator[None]:
    """Undo the block's writes and raise the verdict, where the database refuses them by a constraint that means one.

    Opens a savepoint in the transaction of the claim.

    Raises:
        Verdict: see `VERDICTS`.
        django.db.IntegrityError: another constraint.
    """
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        verdict = VERDICTS.get(_constraint(error))
        if verdict is None:
            raise
        raise verdict from error


def _constraint(error: IntegrityError) -> str:
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", None) or ""
