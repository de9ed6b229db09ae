"""What staff do is on record before it is done, and a form acts once however often it is sent."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError

from idempotency import telemetry
from idempotency.conf import conf
from idempotency.ledger import history
from idempotency.ledger.phases import phase

_ONCE = "idempotency_event_form_once"


def begin(
    *,
    form: uuid.UUID,
    kind: str,
    actor: str,
    key_id: uuid.UUID | None = None,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> bool:
    """Record what somebody is about to do; return False if this very form has been sent before."""
    try:
        record(
            kind=kind,
            actor=actor,
            key_id=key_id,
            reason=reason,
            detail={"form": str(form), **(detail or {})},
        )
    except IntegrityError as error:
        if _ONCE not in str(error):
            raise
        return False
    return True


def record(
    *,
    kind: str,
    actor: str,
    key_id: uuid.UUID | None = None,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Append one event in a transaction of its own."""
    with phase(using=conf.DATABASE) as phases:
        history.record(
            connection=phases.connection,
            key_id=key_id,
            kind=kind,
            actor=actor,
            reason=reason,
            detail=detail,
        )
    telemetry.emit(telemetry.StaffActed(kind, actor, "" if key_id is None else str(key_id)))


def handle(*, form: uuid.UUID, event_id: int, actor: str, reason: str) -> bool:
    """Record that somebody has seen to an alarm; return False if it, or this very form, was seen to before."""
    with phase(using=conf.DATABASE) as phases:
        done = history.handled(
            connection=phases.connection, event_id=event_id, actor=actor, reason=reason, form=form
        )
    telemetry.emit(telemetry.StaffActed("handled", actor, ""))
    return done
