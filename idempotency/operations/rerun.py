"""A message that was taken in, run again because a person wants it: what is undone of it is done, and no more.

The inbox is not opened for it: the guard stays, and who went around it, why and when, is on record.
"""

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.conf import conf
from idempotency.exceptions import Misuse
from idempotency.ledger import history, sealing
from idempotency.ledger.phases import phase
from idempotency.operations.byhand import NotNow

F = TypeVar("F", bound=Callable[..., object])

_handlers: dict[str, Callable[..., object]] = {}


def message_handler(source: str) -> Callable[[F], F]:
    """Register what runs a message of that source again: a function of `message`, its bytes as they came.

    It runs in one transaction, makes no outside call, and must bear that all of it was done before.

    Raises:
        Misuse: the source has another one already.
    """

    def register(function: F) -> F:
        known = _handlers.get(source)
        if known is not None and known.__qualname__ != function.__qualname__:
            raise Misuse(f"{source!r} has a handler already: {known.__qualname__}.")
        _handlers[source] = function
        return function

    return register


def can_run(source: str) -> bool:
    """Whether messages of that source can be run again."""
    return source in _handlers


def run_again(*, key_id: uuid.UUID, actor: str, reason: str) -> None:
    """Run a kept message again, on record, in one transaction.

    Raises:
        NotNow: it is no message, not kept any more, or nothing is registered that runs it.
    """
    with phase(using=conf.DATABASE) as phases:
        source, message = _kept(phases.connection, key_id)
        handler = _handlers.get(source)
        if handler is None:
            raise NotNow(f"No message handler is registered for {source}.")
        handler(message=message)
        history.record(
            connection=phases.connection,
            key_id=key_id,
            kind="run-again",
            actor=actor,
            reason=reason,
        )


def _kept(connection: BaseDatabaseWrapper, key_id: uuid.UUID) -> tuple[str, bytes]:
    """Return source and text of a message, locked: of two people who press at once the second one waits."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT scope, body FROM idempotency_key "
            "WHERE id = %s AND status = 204 AND state = 'completed' FOR NO KEY UPDATE",
            [key_id],
        )
        row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        raise NotNow("It is not a message that has been taken in.")
    source, body = row
    message = b"" if body is None else sealing.unseal(body)
    if not message:
        raise NotNow("The message itself is not kept, or not any more.")
    return str(source), message
