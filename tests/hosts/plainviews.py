"""A host without DRF in its views: Django's own functions and classes."""

import json
import uuid
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import engines
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from rest_framework.response import Response

from idempotency.decorators import IdempotentHttpRequest, idempotent
from idempotency.http import problem
from idempotency.ledger import Claim
from idempotency.operations import Resolver, resolver
from idempotency.types import LookUp, OpenStep
from tests.support.host import other_side, outside


@login_required
@idempotent(operation="plain.order", required=True)
def order(request: IdempotentHttpRequest) -> HttpResponse:
    given: dict[str, Any] = json.loads(request.body)
    group = Group.objects.create(name=uuid.uuid4().hex)
    match given.get("kind"):
        case "verdict":
            raise problem.Refused("Too poor.")
        case "forbidden":
            raise PermissionDenied
        case "broken":
            raise RuntimeError("broken")
        case "template":
            page = engines["django"].from_string("It is {{ name }}.")
            return TemplateResponse(request, page, {"name": group.name})
        case "of-drf":
            return Response({"name": group.name})
    return JsonResponse({"name": group.name}, status=201)


@login_required
@idempotent(operation="plain.form")
def form(request: IdempotentHttpRequest, number: int) -> HttpResponse:
    if request.method == "POST":
        Group.objects.create(name=f"{number} {request.POST['name']}")
    return HttpResponse(f"{number} {request.POST.get('name', '')}", content_type="text/plain")


class Charge(View):
    @method_decorator(login_required)
    @idempotent(operation="plain.charge", required=True)
    def post(self, request: IdempotentHttpRequest) -> HttpResponse:
        return answer(outside(request.claim).reference)


def answer(reference: str) -> HttpResponse:
    return JsonResponse({"reference": reference}, status=201)


@resolver("plain.charge")
class ChargeResolver(Resolver):
    view = View

    def look_up(self, *, step: OpenStep) -> LookUp:
        return other_side.look_up(step)

    def finish(self, *, claim: Claim, endings: Any) -> HttpResponse:
        return answer(endings["charge"].result.reference)


@method_decorator(
    idempotent(operation="plain.nobody", required=True, scope=lambda r: "all"), "dispatch"
)
class Nobody(View):
    """Decorated as a whole, and open to everybody."""

    def post(self, request: HttpRequest) -> HttpResponse:
        return JsonResponse({"nonce": uuid.uuid4().hex})


urlpatterns = [
    path("order/", order),
    path("form/<int:number>/", form),
    path("charge/", Charge.as_view()),
    path("nobody/", Nobody.as_view()),
]
