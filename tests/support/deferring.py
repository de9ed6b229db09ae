"""A host that defers, made for tests: its operations do what `jobs.script` says, once per entry.

Local effects are rows of `auth.Group`; outside effects are in `tests.support.host.other_side.effects`.
"""

import threading
import uuid
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import Group
from django.urls import include, path
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.decorators import idempotent
from idempotency.exceptions import CallFailed, CallUnknown
from idempotency.ledger import Claim
from idempotency.operations import Resolver, accept, defer, operation, resolver
from idempotency.types import LookUp, OpenStep, State
from tests.support.host import KEYED, UNKEYED, other_side, outside


class Jobs:
    """What the handlers below do, and what they have seen."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.script: list[Callable[[Claim], Any] | BaseException] = []
        self.runs: list[Any] = []
        self.refusal: CallFailed | None = None
        self.ended: list[tuple[uuid.UUID, State, type[BaseException] | None]] = []

    def begin(self, claim: Claim, given: Any) -> Any:
        with self.lock:
            self.runs.append(given)
            does = self.script.pop(0) if self.script else None
        if isinstance(does, BaseException):
            raise does
        return does(claim) if does is not None else None


jobs = Jobs()


@operation("test.job")
def job(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """A local effect."""
    Group.objects.create(name=uuid.uuid4().hex)
    return jobs.begin(claim, input) or {"did": input}


@operation("test.transfer")
def transfer(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """An effect outside, between two local ones."""
    Group.objects.get_or_create(name=f"{claim.id}-pending")
    jobs.begin(claim, input)
    result = outside(claim, downstream=UNKEYED if input.get("unkeyed") else KEYED)
    Group.objects.create(name=f"{claim.id}-done")
    if input.get("then"):
        jobs.begin(claim, input)
    return {"reference": result.reference}


@operation("test.two-steps")
def two_steps(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Two effects outside; a handler that makes the best of a call that fails."""
    jobs.begin(claim, input)
    outside(claim, step="first")
    try:
        result = outside(claim, step="second")
    except (CallFailed, CallUnknown):
        if not input.get("swallow"):
            raise
        return {"reference": None}
    return {"reference": result.reference}


@operation("test.guarded", refusal=lambda: jobs.refusal)
def guarded(*, claim: Claim, input: Any) -> Any:  # noqa: A002
    """Work that a breaker can refuse."""
    return jobs.begin(claim, input) or {"did": input}


class TransferResolver(Resolver):
    view = APIView

    def look_up(self, *, step: OpenStep) -> LookUp:
        return other_side.look_up(step)

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        jobs.ended.append((claim.id, state, type(error) if error else None))


resolver("test.transfer")(TransferResolver)
resolver("test.job")(TransferResolver)
resolver("test.two-steps")(TransferResolver)


class Accepts(APIView):
    """Promises the operation that the body names; the key is optional."""

    def post(self, request: Any) -> Response:
        name = request.data["operation"]
        return accept(
            claim=request.claim,
            operation=name,
            input=request.data["input"],
            delay=request.data.get("delay", 0),
        )


class AcceptsJob(Accepts):
    post = idempotent(operation="test.job")(Accepts.post)


class AcceptsTransfer(Accepts):
    post = idempotent(operation="test.transfer", required=True)(Accepts.post)


class AcceptsTwoSteps(Accepts):
    post = idempotent(operation="test.two-steps", required=True)(Accepts.post)


class AcceptsGuarded(Accepts):
    post = idempotent(operation="test.guarded")(Accepts.post)


class Outbox(APIView):
    """Defers beside its own work."""

    @idempotent(operation="test.outbox", required=True)
    def post(self, request: Any) -> Response:
        Group.objects.create(name=uuid.uuid4().hex)
        for role in request.data.get("roles", [""]):
            defer("test.job", {"role": role}, role=role)
        if request.data.get("call"):
            outside(request.claim)
        if request.data.get("fail"):
            raise RuntimeError("boom")
        return Response({"ok": True}, status=201)


urlpatterns = [
    path("jobs/", AcceptsJob.as_view()),
    path("transfers/", AcceptsTransfer.as_view()),
    path("two-steps/", AcceptsTwoSteps.as_view()),
    path("guarded/", AcceptsGuarded.as_view()),
    path("outbox/", Outbox.as_view()),
    path("", include("idempotency.urls")),
]
