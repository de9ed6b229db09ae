"""What the gateway says later of a charge, a refund or a payout: by an event, or when it is asked again.

A row whose key is still open is left to whoever settles the key: the ledger is only told, so that a look-up comes at
once and finds what it looks for. A row that was left processing is finished here. What contradicts a settled key is
written down as it really is, and raised (R39).
"""

import logging
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import assert_never

from django.db.models import Q
from django.db.models.functions import Now

from idempotency.exceptions import CallError
from idempotency.operations import heard_of, late_news
from idempotency.resilience import Deadline
from idempotency.types import Absent, Applied, LookUp, News, Pending, Rejected, State
from payments.conf import conf
from payments.exceptions import OrderOpen, RefundTooLarge
from payments.gateway import Event, Kind, Movement, Progress, Unreadable, gateway
from payments.models import Payment, Payout, Refund
from payments.money import shown
from payments.services.charging import CHARGE, refusal_status
from payments.services.constraints import verdicts
from payments.services.differing import Row, compare, otherwise
from payments.services.payouts import PAYOUT
from payments.services.refunding import REFUND

logger = logging.getLogger(__name__)

_MODELS: dict[Kind, type[Row]] = {
    Kind.CHARGE: Payment,
    Kind.REFUND: Refund,
    Kind.PAYOUT: Payout,
}
SECONDS = 15.0
"""After which a turn asks about no further row: it ends within a task's hard limit also where the gateway is slow."""

_STEPS = {Kind.CHARGE: CHARGE, Kind.REFUND: REFUND, Kind.PAYOUT: PAYOUT}
_OPEN = (State.IN_PROGRESS, State.UNKNOWN)


def take_in(event: Event | Unreadable) -> str:
    """Write down what an event tells; requires the transaction in which the event is remembered.

    Returns: what came of it, in a few words for staff.
    """
    if isinstance(event, Unreadable):
        late_news(
            key_id=None,
            actor="event",
            detail={"about": f"message {event.id}"},
            news=News.UNREADABLE,
        )
        return _ALARMED
    row = _find(event)
    if row is None:
        return _ALARMED if _unknown_money(event) else "nothing here is about it"
    ours = row.gateway_reference in (None, event.gateway_id)
    if row.status == "pending" and _tell_the_ledger(row, event) in _OPEN:
        # Whoever settles the key compares the sums, too.
        return "its key is open and is looked up now"
    before = row.status
    differs = ours and _compare(row, event.said, heard_by="event")
    raised = (
        _write(row, event.said, event.gateway_id, heard_by="event")
        if ours
        else _other_money(row, event)
    )
    if raised or differs:
        return _ALARMED
    return f"changed nothing: {before}" if row.status == before else f"now {row.status}"


_ALARMED = "an alarm was raised"


def about(event: Event | Unreadable) -> str:
    """Return the gateway's id of what an event is about, as far as it can be read."""
    return event.id if isinstance(event, Unreadable) else event.gateway_id


def headline(event: Event | Unreadable) -> str:
    """Return in one line what an event tells, for staff."""
    if isinstance(event, Unreadable):
        return "Event of the gateway that cannot be read"
    match event.said:
        case Applied(result=result):
            movement = Movement.of(result.record)
            money = shown(movement.amount, movement.currency)
            return f"Event of the gateway: {event.kind.value} of {money} {movement.status.value}"
        case Rejected(code=code):
            return f"Event of the gateway: {event.kind.value} refused ({code[:60]})"
        case _:
            return f"Event of the gateway: {event.kind.value}, nothing decided"


def follow_up(*, limit: int = 50) -> int:
    """Ask the gateway about what it had not decided; return how many rows were finished.

    Forbids a transaction: each row is read, asked about, and written only if it is still as it was read (R43).
    """
    finished = 0
    until = Deadline.after(SECONDS)
    for kind, row in _undecided(limit):
        if until.expired:
            break
        if not _take(row):
            continue
        try:
            said = _retrieve(kind, row)
            if isinstance(said, Applied | Rejected):
                finished += _finish_unchanged(row, said)
        except CallError:
            # No verdict, and none on the others: it may be this one only. Where nothing is reached, the breaker opens.
            continue
        except Exception:
            # Whatever is wrong with one of them, the others are asked about.
            logger.exception("%s cannot be followed up", row)
    return finished


# -- which row ---------------------------------------------------------------------------------------------------------


def _find(event: Event) -> Row | None:
    """Return the row by the gateway's id, or, where it does not know that yet, by our own (E11)."""
    rows = _MODELS[event.kind]._default_manager.all()
    known: Row | None = rows.filter(gateway_reference=event.gateway_id).first()
    if known is not None or not event.reference:
        return known
    try:
        ours = uuid.UUID(event.reference)
    except ValueError:
        # Somebody else's reference: another system may use the same account.
        return None
    mine: Row | None = rows.filter(pk=ours).first()
    return mine


def _tell_the_ledger(row: Row, event: Event) -> State | None:
    result = event.said.result if isinstance(event.said, Applied) else None
    known = event.gateway_id if result else ""
    return heard_of(key_id=row.key_id, step=_STEPS[event.kind], reference=known, result=result)


# -- what is written ---------------------------------------------------------------------------------------------------


def _write(row: Row, said: LookUp, gateway_id: str, *, heard_by: str) -> bool:
    """Move the row as far as it goes; say whether that contradicts a settled key, which is raised."""
    before = row.status
    match said:
        case Applied(result=result):
            moved = _applied(row, Movement.of(result.record))
            if (moved and before != "processing") or moved is None:
                _late(row, before, gateway_id, heard_by)
                return True
        case Rejected(code=code):
            if before == "processing":
                row.move(_refused_status(row, code), **_refusal(row, code), settled_at=Now())
            elif before == "succeeded" and not isinstance(row, Payment):
                _came_back(row, code, gateway_id, heard_by)
                return True
        case Absent() | Pending():
            pass
        case _:
            assert_never(said)
    return False


def _applied(row: Row, movement: Movement, *, unchanged: bool = False) -> bool | None:
    """Return whether the row moved; None where the books have no room for what happened."""
    write = row.move_unchanged if unchanged else row.move
    try:
        with verdicts():
            if movement.status is Progress.SUCCEEDED:
                return write("succeeded", gateway_reference=movement.id, settled_at=Now())
            return write("processing", gateway_reference=movement.id)
    except (OrderOpen, RefundTooLarge):
        return None


def _refused_status(row: Row, code: str) -> str:
    return refusal_status(code) if isinstance(row, Payment) else "refused"


def _refusal(row: Row, code: str) -> dict[str, str]:
    return {"decline_reason" if isinstance(row, Payment) else "refusal": code[:60]}


# -- what is raised ----------------------------------------------------------------------------------------------------


def _late(
    row: Row, before: str, gateway_id: str, heard_by: str, news: News = News.OTHERWISE
) -> None:
    said = {"gateway_reference": gateway_id, "our_books_said": before, "about": str(row)}
    late_news(key_id=row.key_id, actor=heard_by, detail=said, news=news)


def _other_money(row: Row, event: Event) -> bool:
    """Raise that the gateway moved money a second time for one row, and say so; the row keeps the first."""
    if not isinstance(event.said, Applied):
        return False
    before = f"{row.status} by {row.gateway_reference}"
    _late(row, before, event.gateway_id, "event", News.TWICE)
    return True


def _came_back(row: Refund | Payout, code: str, gateway_id: str, heard_by: str) -> None:
    """Raise that what was done has failed after all: a bank can send a refund or a payout back days later."""
    otherwise(row, f"failed: {code}", gateway_id, heard_by=heard_by)


def _compare(row: Row, said: LookUp, *, heard_by: str) -> bool:
    """Raise that another sum has moved than was asked for, and say so; it is written down all the same."""
    return isinstance(said, Applied) and compare(
        row, Movement.of(said.result.record), heard_by=heard_by
    )


def _unknown_money(event: Event) -> bool:
    """Raise money that moved without a row of ours (F9), and say so."""
    if not isinstance(event.said, Applied):
        return False
    movement = Movement.of(event.said.result.record)
    detail = {
        "kind": event.kind.value,
        "gateway_reference": event.gateway_id,
        "said": shown(movement.amount, movement.currency),
        "reference": event.reference,
    }
    late_news(key_id=None, actor="event", detail=detail)
    return True


# -- asking again ------------------------------------------------------------------------------------------------------


def _undecided(limit: int) -> Iterator[tuple[Kind, Row]]:
    quiet = Q(status="processing", updated_at__lt=Now() - timedelta(seconds=conf.FOLLOW_EVERY))
    for kind, model in _MODELS.items():
        for row in model._default_manager.filter(quiet).order_by("updated_at")[:limit]:
            yield kind, row


def _take(row: Row) -> bool:
    """Put the row behind all others, unless it has changed or somebody else has just done so."""
    same = type(row)._default_manager.filter(pk=row.pk, version=row.version)
    return bool(same.filter(updated_at=row.updated_at).update(updated_at=Now()))


def _retrieve(kind: Kind, row: Row) -> LookUp:
    through, known = gateway(), row.gateway_reference or ""
    match kind:
        case Kind.CHARGE:
            return through.retrieve_charge(known)
        case Kind.REFUND:
            return through.retrieve_refund(known)
        case Kind.PAYOUT:
            return through.retrieve_payout(known)
        case _:
            assert_never(kind)


def _finish_unchanged(row: Row, said: Applied | Rejected) -> bool:
    if isinstance(said, Rejected):
        status, why = _refused_status(row, said.code), _refusal(row, said.code)
        return row.move_unchanged(status, **why, settled_at=Now())
    moved = bool(_applied(row, Movement.of(said.result.record), unchanged=True))
    if moved and row.status == "succeeded":
        _compare(row, said, heard_by="follow-up")
    return moved
