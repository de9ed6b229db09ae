"""A caller came again: whether they may still see the answer, and what of it is put on record for people."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from django.db import Error, connections
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.views import APIView

from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.http.plain import PlainView
from idempotency.ledger import history, values
from idempotency.ledger.phases import Phases, phase


def require_allowed(
    view: APIView | PlainView,
    request: Request | HttpRequest,
    check: Callable[[Any, Any], None] | None,
) -> None:
    """Refuse a replay to a caller who would be refused today (R1)."""
    if check is not None:
        check(view, request)
        return
    lookup = getattr(view, "lookup_url_kwarg", None) or getattr(view, "lookup_field", None)
    get_object = getattr(view, "get_object", None)
    if lookup not in view.kwargs or get_object is None:
        return
    try:
        get_object()
    except Http404:
        # The object is gone; that the key is this caller's own was decided by the scope.
        return


def note_refusal(found: values.Reused | values.StillUnknown, *, phases: Phases) -> None:
    """Record, in the transaction that found it, in what a refused repeat differed, or that it came too early."""
    differing = found.differing if isinstance(found, values.Reused) else []
    detail = {"differing": differing, "state": found.found.state}
    try:
        history.refused(connection=phases.connection, key_id=found.found.id, detail=detail)
        phases.commit()
    except Error:
        # A record is not worth a 5xx.
        phases.abandon()


def note_replay(response: HttpResponseBase, *, key_id: uuid.UUID, request_id: str) -> None:
    """Have a replay recorded once its answer is sent, so that its caller does not wait for the record.

    Without `RECORD_REPLAYS` nothing is written. With it, one replay of a key in a minute is, of each process.
    """
    if not conf.RECORD_REPLAYS or not _lately.is_first(key_id):
        return
    close = response.close

    def record_and_close() -> None:
        # Before it is closed, for then Django gives the connection back.
        try:
            detail = {"request_id": request_id[:100]} if request_id else {}
            _record_replay(key_id, detail)
        finally:
            close()

    response.close = record_and_close  # type: ignore[method-assign]


def _record_replay(key_id: uuid.UUID, detail: Mapping[str, Any]) -> None:
    try:
        with phase(using=conf.DATABASE) as phases:
            history.replayed(connection=phases.connection, key_id=key_id, detail=detail)
    except Error:
        connections[conf.DATABASE].close()


_SECONDS = 60.0
_KEYS = 10_000
"""Keys that a process remembers; beyond that it forgets all and lets the database decide."""


class _Lately:
    """Which keys' replays this process has recorded in the last minute: a crowd of repeats writes once."""

    def __init__(self) -> None:
        self._until: dict[uuid.UUID, float] = {}

    def is_first(self, key_id: uuid.UUID) -> bool:
        now = SYSTEM.now()
        if self._until.get(key_id, now) > now:
            return False
        if len(self._until) >= _KEYS:
            self._until = {}
        self._until[key_id] = now + _SECONDS
        return True


_lately = _Lately()
