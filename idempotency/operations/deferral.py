"""Promise work: `accept` as the answer of a request, `defer` beside the work of any handler (R31, R40).

Both only write rows, in the transaction that is open: what is promised is committed with what promised it, or not at
all. Workers are nudged after that commit.
"""

import hashlib
import json
import uuid
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connections, transaction
from django.urls import reverse
from rest_framework.response import Response

from idempotency.conf import conf
from idempotency.exceptions import Misuse
from idempotency.ledger import storable, work
from idempotency.ledger.claim import Claim, Promise, current_claim
from idempotency.ledger.values import Identity
from idempotency.operations import monitor, wake
from idempotency.operations.ids import new_id
from idempotency.operations.registry import definition_of

NOBODY = "~nobody"
"""The scope of work that no caller asked for: no status monitor shows it."""


def accept(
    *,
    claim: Claim,
    operation: str,
    input: Any,  # noqa: A002 - the contract's own word
    delay: float = 0,
) -> Response:
    """Promise the request's work for later and return its 202: with Location, Retry-After and the operation.

    The work runs under the request's own key. The answer is stored with it, and replayed in every state.

    Args:
        operation: a registered operation's name.
        input: what its handler gets: plain JSON.
        delay: seconds before which it is not begun.

    Raises:
        Misuse: no handler is registered, the input is not plain JSON, the claim is itself a deferred run, or it has
            accepted other work.
    """
    definition = definition_of(operation)
    payload = _as_json(input)
    claim.require_key()
    connection = claim.phases.connection
    new = new_id(scope=claim.scope)
    operation_id = work.add(
        connection=connection,
        id=new,
        key_id=claim.id,
        name=operation,
        payload=payload,
        max_attempts=definition.max_attempts,
    )
    if operation_id != new and claim.promised is not None:
        raise Misuse(
            "accept() was called twice: it answers the request. For more work use defer()."
        )
    claim.promised = Promise(delay=delay)
    if not delay:
        wake.nudge(key_id=claim.id)
    view = work.view(connection=connection, id=operation_id, scope=claim.scope)
    if view is None or view.attempts:
        raise Misuse("accept() answers a request; inside deferred work use defer().")
    return Response(
        monitor.representation(view),
        status=202,
        headers={
            "Location": address_of(operation_id),
            "Retry-After": str(monitor.retry_after(view) or 1),
        },
    )


def defer(
    operation: str,
    input: Any,  # noqa: A002 - the contract's own word
    *,
    claim: Claim | None = None,
    role: str = "",
    scope: str | None = None,
    delay: float = 0,
) -> uuid.UUID:
    """Promise further work, committed with the transaction that is open: the outbox. Return the operation's id.

    Within a claim it is found again, not made again, by a resumed or repeated run: it is unique per key, generation,
    operation and role.

    Args:
        operation: a registered operation's name.
        input: what its handler gets: plain JSON.
        claim: by whose work it is promised; default: the claim that this code runs under, if any.
        role: tells apart what one handler defers under the same operation's name.
        scope: whose it is; default: the claim's scope, or nobody's.
        delay: seconds before which it is not begun.

    Raises:
        Misuse: no handler is registered, the input is not plain JSON, or this role stands for another input.
    """
    definition = definition_of(operation)
    claim = claim or current_claim()
    payload = _as_json(input)
    if claim is not None:
        claim.require_key()
    owner = scope or (claim.scope if claim is not None else NOBODY)
    with transaction.atomic(using=conf.DATABASE):
        minted = work.mint(
            connection=connections[conf.DATABASE],
            id=new_id(scope=owner),
            identity=Identity(scope=owner, operation=operation, key=_minted_key(claim, role)),
            digest=hashlib.sha256(payload.encode()).digest(),
            payload=payload,
            max_attempts=definition.max_attempts,
            delay=delay,
        )
        if minted is None:
            raise Misuse(
                f"{operation!r} was deferred already by this key, with another input: give each a role of its own."
            )
        key_id, operation_id = minted
        if not delay:
            wake.nudge(key_id=key_id)
    return operation_id


def address_of(operation_id: uuid.UUID) -> str:
    """Return the path of the status monitor."""
    return reverse("idempotency-operation", kwargs={"id": operation_id})


def _minted_key(claim: Claim | None, role: str) -> str:
    if claim is None:
        return str(uuid.uuid4())
    name = f"{claim.id}/{claim.generation}"
    return f"{name}/{role}" if role else name


def _as_json(given: Any) -> str:
    try:
        text = json.dumps(given, cls=DjangoJSONEncoder, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misuse(f"The input of deferred work must be plain JSON: {error}") from error
    if not storable.is_json(text):
        raise Misuse(
            "The input of deferred work holds a NUL or half of a surrogate pair, which PostgreSQL cannot keep."
        )
    return text
