"""What a host writes, as mypy (strict) and pyright see it. Never run: `make types` reads it.

A `type: ignore` marks a mistake that both must see: where one of them does not, it is reported as unneeded.
"""

import contextlib
import uuid
from collections.abc import Mapping
from typing import Any, assert_type

from django.http import HttpRequest
from rest_framework.decorators import api_view
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency import client
from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.exceptions import CallError, CallFailed, CallRejected, CallUnknown
from idempotency.http import problem
from idempotency.ledger import Claim
from idempotency.openapi import AutoSchema, problems
from idempotency.operations import (
    Resolver,
    accept,
    consume,
    defer,
    idempotent_task,
    operation,
    recurring,
    resolver,
)
from idempotency.resilience import (
    Attempt,
    Bulkhead,
    CircuitBreaker,
    Deadline,
    Guard,
    RetryPolicy,
    Source,
    degrade,
)
from idempotency.testing import assert_replayed
from idempotency.types import (
    Absent,
    Applied,
    Downstream,
    LookUp,
    OpenStep,
    OutsideRequest,
    OutsideResult,
    State,
)

GATEWAY = Downstream(name="gateway", keyed=True, settling_time=20, key_memory=86_400)
GUARD = Guard(
    name="gateway",
    keyed=True,
    policy=RetryPolicy(attempts=3, base=0.05),
    breaker=CircuitBreaker(name="gateway"),
    bulkhead=Bulkhead(name="gateway", limit=8),
)
STATEMENTS = recurring("statements", every=lambda: 3_600, purpose="sends the daily statements")


def send_statements() -> None:
    with STATEMENTS.turn() as detail:
        detail["sent"] = 1


def send(request: OutsideRequest) -> OutsideResult:
    def attempt(attempt: Attempt) -> OutsideResult:
        assert_type(attempt.timeout, float)
        return OutsideResult(reference="r", record={"bytes": len(request.payload)})

    result = GUARD.call(attempt)
    assert_type(result, OutsideResult)
    return result


def scope(request: HttpRequest) -> str:
    return str(request.user.pk)


class Orders(APIView):
    @idempotent(operation="shop.order", required=True, methods=["POST"], scope=scope, headers=["X"])
    def post(self, request: IdempotentRequest, number: int) -> Response:
        claim = request.claim
        assert_type(claim, Claim)
        assert_type(claim.id, uuid.UUID)
        assert_type(claim.generation, int)
        claim.link(resource="/orders/1/", reference="1", summary="One")
        try:
            charge = claim.outside_call(
                step="charge", request={"amount": 1}, send=send, downstream=GATEWAY
            )
        except CallRejected as error:
            assert_type(error.reference, str)
            raise
        except CallFailed as error:
            assert_type(error.retry_after, float | None)
            raise
        except CallUnknown as error:
            assert_type(error.code, str)
            raise
        assert_type(charge.record, Mapping[str, Any])
        return Response(status=201)

    # The decorator keeps the handler's own signature.
    def caller(self, request: IdempotentRequest) -> None:
        assert_type(self.post(request, 1), Response)
        self.post(request, "one")  # type: ignore[arg-type]


@api_view(["POST"])
@idempotent(operation="shop.function")
def function(request: IdempotentRequest) -> Response:
    return accept(claim=request.claim, operation="shop.letter", input={})


@operation("shop.letter", max_attempts=5, policy=RetryPolicy(), time_limit=10)
def letter(*, claim: Claim, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    assert_type(defer("shop.letter", {}, claim=claim, role="copy", delay=5), uuid.UUID)
    return {}


@resolver("shop.order")
class OrderResolver(Resolver):
    view = Orders

    def look_up(self, *, step: OpenStep) -> LookUp:
        assert_type(step.payload, bytes)
        found = bool(step.reference)
        return Applied(OutsideResult(step.reference, {})) if found else Absent()

    def finish(self, *, claim: Claim, endings: Mapping[str, LookUp]) -> Response:
        return Response(status=201)

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        assert isinstance(error, CallError | None)


def messages() -> None:
    with consume("stripe", "evt_1", fingerprint=b"body") as claim:
        assert_type(claim, Claim | None)


@idempotent_task(key=lambda number: f"task {number}")
def task(number: int) -> str:
    return str(number)


def callers() -> None:
    assert_type(task(1), str | None)
    task("one")  # type: ignore[arg-type]
    with contextlib.suppress(Exception):
        idempotent(required="yes")  # type: ignore[arg-type]
        idempotent("shop.order")  # type: ignore[call-arg]
        operation("shop.wrong")(len)  # type: ignore[type-var]


def resilience(source: Source) -> None:
    assert_type(Deadline.after(1.0).left(), float)
    assert_type(degrade(source).partial, bool)


def documents() -> None:
    assert_type(AutoSchema().get_operation_id(), str)
    problems("key-missing")


def tests(first: Any, again: Any) -> None:
    assert_replayed(first, again)


def consumers(session: Any) -> None:
    caller = client.Client("https://api.example.com", http=session, store=client.MemoryIntents())
    assert_type(caller.post("/orders/", json={}, intent="order 1"), client.Answer)


def verdicts() -> None:
    raise problem.KeyMissing
