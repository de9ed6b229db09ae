"""A host of the ledger, made for tests: views whose effects are counted, and another side that does what it is told.

Local effects are rows of `auth.Group`; outside effects are in `other_side.effects`.
"""

import contextlib
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from django.contrib.auth.models import Group
from django.db import DatabaseError
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import include, path
from rest_framework.authtoken.models import Token
from rest_framework.decorators import action, api_view
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from idempotency.decorators import IdempotentRequest, idempotent
from idempotency.exceptions import CallFailed, CallRejected, CallUnknown
from idempotency.ledger import Claim
from idempotency.operations import Resolver, resolver
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

KEYED = Downstream(name="other", keyed=True, settling_time=20, key_memory=86_400)
UNKEYED = Downstream(name="other", keyed=False, settling_time=20, key_memory=86_400)


class OtherSide:
    """The other end of an outside call, in memory; `script` says what it does, once per entry."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.effects: list[str] = []
        self.requests: list[tuple[str, bytes]] = []
        self.script: list[Callable[[], None] | BaseException | str] = []
        self.lookup: LookUp | BaseException | None = None
        self.looked_up = 0
        self.keyed = True

    def send(self, request: OutsideRequest) -> OutsideResult:
        with self.lock:
            self.requests.append((request.downstream_key, request.payload))
            does = self.script.pop(0) if self.script else "apply"
        if callable(does):
            does()
            does = "apply"
        if isinstance(does, BaseException):
            raise does
        if does in ("apply", "apply-and-lose"):
            with self.lock:
                if not (self.keyed and request.downstream_key in self.effects):
                    self.effects.append(request.downstream_key)
        if does in ("apply-and-lose", "lose"):
            raise CallUnknown("the answer was lost")
        return OutsideResult(f"ref-{request.downstream_key[:8]}", {"status": "succeeded"})

    def look_up(self, step: OpenStep) -> LookUp:
        self.looked_up += 1
        if isinstance(self.lookup, BaseException):
            raise self.lookup
        if self.lookup is not None:
            return self.lookup
        if step.downstream_key in self.effects:
            return Applied(OutsideResult(f"ref-{step.downstream_key[:8]}", {"status": "succeeded"}))
        return Absent()


other_side = OtherSide()


def outside(claim: Claim, step: str = "charge", downstream: Downstream = KEYED) -> OutsideResult:
    return claim.outside_call(
        step=step, request={"amount": 5}, send=other_side.send, downstream=downstream
    )


class Conflict(APIException):
    status_code = 409
    default_code = "no-stock"


class TooPoor(APIException):
    status_code = 402
    default_code = "too-poor"


def _local(request: Request) -> HttpResponseBase:  # noqa: C901 - one case a kind of ending
    """A local handler that ends as its `kind` says, after its effect."""
    data = cast(dict[str, Any], request.data)
    Group.objects.create(name=data.get("name") or uuid.uuid4().hex)
    match data.get("kind"):
        case None:
            return Response(
                {"name": data["name"], "nonce": uuid.uuid4().hex},
                status=201,
                headers={"Location": "/made/", "ETag": '"1"', "Set-Cookie": "a=b", "X-Other": "x"},
            )
        case "raise":
            raise RuntimeError("boom")
        case "exit":
            raise SystemExit(3)
        case "invalid":
            raise ValidationError({"name": ["no"]})
        case "conflict":
            raise Conflict("none left")
        case "too-poor":
            raise TooPoor
        case "returned-402":
            return Response({"detail": "no"}, status=402)
        case "returned-503":
            return Response({"detail": "later"}, status=503)
        case "deferred-constraint":
            Token.objects.create(user_id=987_654_321)
            return Response(status=201)
        case "empty":
            return Response(status=204)
        case "binary":
            return HttpResponse(bytes(range(256)), content_type="application/x-bin", status=201)
        case "streaming":
            return StreamingHttpResponse(iter([b"a", b"b"]))
        case "large":
            return Response({"blob": "z" * 2_000_000}, status=201)
        case "unrenderable":
            return Response({"it": object()}, status=201)
        case "swallowed-database-error":
            with contextlib.suppress(DatabaseError):
                Group.objects.create(name=data["name"])
            return Response(status=201)
    raise AssertionError(data)


class Local(APIView):
    @idempotent(operation="test.local", required=True, methods=["POST", "PATCH", "PUT", "DELETE"])
    def post(self, request: IdempotentRequest, **_: object) -> HttpResponseBase:
        return _local(request)

    put = patch = delete = post

    def get(self, request: IdempotentRequest, **_: object) -> Response:
        return Response({"safe": True})


class Keyless(APIView):
    """Optional key."""

    @idempotent(operation="test.keyless")
    def post(self, request: IdempotentRequest) -> Response:
        Group.objects.create(name=uuid.uuid4().hex)
        if cast(dict[str, Any], request.data).get("outside"):
            outside(request.claim)
        return Response({"nonce": uuid.uuid4().hex}, status=201)


class Charge(APIView):
    """One outside call between two local effects."""

    downstream = KEYED
    operation = "test.charge"

    def charge(self, request: IdempotentRequest) -> Response:
        data = cast(dict[str, Any], request.data)
        name, kind = data["name"], data.get("kind")
        Group.objects.get_or_create(name=f"{name}-pending")
        request.claim.link(resource=f"/groups/{name}/", reference=name, summary=f"Charge {name}")
        if kind == "invalid-before":
            raise ValidationError({"name": ["no"]})
        try:
            result = outside(request.claim, downstream=self.downstream)
        except (CallRejected, CallFailed, CallUnknown):
            if kind != "swallow":
                raise
            Group.objects.get_or_create(name=f"{name}-swallowed")
            return Response({"swallowed": True}, status=201)
        Group.objects.get_or_create(name=f"{name}-done")
        if kind == "raise-after":
            raise RuntimeError("boom after the call")
        if kind == "verdict-after":
            raise Conflict("too late for that")
        if kind == "returned-after":
            return Response({"code": "no-stock"}, status=409)
        if kind == "constraint-after":
            Token.objects.create(user_id=987_654_321)
        if kind == "second-call":
            outside(request.claim, step="second", downstream=self.downstream)
        return answer_of_charge(name, result.reference)


def answer_of_charge(name: str, reference: str) -> Response:
    return Response({"name": name, "reference": reference}, status=201)


class KeyedCharge(Charge):
    @idempotent(operation="test.charge", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return self.charge(request)


class UnkeyedCharge(Charge):
    downstream = UNKEYED

    @idempotent(operation="test.charge-unkeyed", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        return self.charge(request)


class ChargeResolver(Resolver):
    view = Charge
    told: list[tuple[uuid.UUID, State]] = []

    def look_up(self, *, step: OpenStep) -> LookUp:
        return other_side.look_up(step)

    def finish(self, *, claim: Claim, endings: Mapping[str, LookUp]) -> HttpResponseBase:
        ending = endings["charge"]
        if not isinstance(ending, Applied):
            raise Conflict("declined")
        name = Group.objects.filter(name__endswith="-pending").latest("id").name[: -len("-pending")]
        Group.objects.get_or_create(name=f"{name}-done")
        return answer_of_charge(name, ending.result.reference)

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        self.told.append((claim.id, state))


resolver("test.charge")(ChargeResolver)
resolver("test.charge-unkeyed")(ChargeResolver)


class Things(GenericViewSet[Group]):
    queryset = Group.objects.all()

    @idempotent(operation="test.things.create", required=True)
    def create(self, request: IdempotentRequest) -> HttpResponseBase:
        return _local(request)

    @action(detail=True, methods=["post"])
    @idempotent(operation="test.things.touch", required=True)
    def touch(self, request: IdempotentRequest, pk: str) -> Response:
        Group.objects.create(name=uuid.uuid4().hex)
        return Response({"pk": pk, "nonce": uuid.uuid4().hex}, status=201)


@api_view(["POST", "GET"])
@idempotent(operation="test.function", required=True)
def function(request: Request) -> HttpResponseBase:
    return _local(request)


class NestedTransaction(APIView):
    """An outside call inside a transaction of the handler's own."""

    @idempotent(operation="test.nested", required=True)
    def post(self, request: IdempotentRequest) -> Response:
        from django.db import transaction

        with transaction.atomic():
            outside(request.claim)
        return Response(status=201)


router = SimpleRouter()
router.register("things", Things, basename="things")

urlpatterns = [
    path("local/", Local.as_view()),
    path("local/<str:part>/", Local.as_view()),
    path("keyless/", Keyless.as_view()),
    path("charge/", KeyedCharge.as_view()),
    path("charge-unkeyed/", UnkeyedCharge.as_view()),
    path("function/", function),
    path("nested/", NestedTransaction.as_view()),
    path("", include(router.urls)),
]
