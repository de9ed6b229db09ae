"""Another sum has moved than was asked for: written down as it happened, and raised (R39)."""

from idempotency.operations import late_news
from idempotency.types import News
from payments.gateway import Movement
from payments.models import Payment, Payout, Refund
from payments.money import shown

Row = Payment | Refund | Payout

ANSWER = "answer"
"""Heard by: what the gateway answered to a call, or to a look-up of it."""


def compare(row: Row, movement: Movement, *, heard_by: str = ANSWER) -> bool:
    """Raise that the gateway moved another sum than the row's, and say so."""
    if (movement.amount, movement.currency) == (row.amount, currency_of(row)):
        return False
    otherwise(row, shown(movement.amount, movement.currency), movement.id, heard_by=heard_by)
    return True


def otherwise(row: Row, said: str, gateway_id: str, *, heard_by: str) -> None:
    """Raise that the gateway did something else than was asked for."""
    late_news(
        key_id=row.key_id,
        actor=heard_by,
        news=News.DIFFERENT,
        detail={
            "gateway_reference": gateway_id,
            "said": said,
            "expected": shown(row.amount, currency_of(row)),
            "about": str(row),
        },
    )


def currency_of(row: Row) -> str:
    """Return the currency of the row's amount; a refund's is its payment's."""
    return row.payment.currency if isinstance(row, Refund) else row.currency
