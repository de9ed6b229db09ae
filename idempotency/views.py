"""Pages of the app itself: one per problem code, where its `type` leads; the policy for keys; the status monitor."""

import re
import uuid
from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from idempotency.http import policy
from idempotency.http.problem import ABOUT_KEYS, catalogue, policy_address
from idempotency.http.scope import scope_of
from idempotency.ledger.work import View
from idempotency.operations import monitor


@require_safe
def problem_page(request: HttpRequest, code: str) -> HttpResponse:
    """Say what a problem code means and what to do about it, as a page or as JSON.

    Source: RFC 9457 §3.1.1 and §4: a problem type's address should lead to its documentation.
    """
    entry = catalogue().get(code)
    if entry is None:
        raise Http404("There is no such problem code.")
    response: HttpResponse
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        response = JsonResponse(asdict(entry))
    else:
        rules = policy_address() if code in ABOUT_KEYS else ""
        response = render(request, "idempotency/problem.html", {"entry": entry, "policy": rules})
    return _published(response)


@require_safe
def policy_page(request: HttpRequest) -> HttpResponse:
    """Publish the rules for keys: as a page, as Markdown or as JSON, whichever is preferred.

    Source: draft-ietf-httpapi-idempotency-key-header-07 §2.3, an expired Internet-Draft.
    """
    response: HttpResponse
    match request.get_preferred_type(["text/html", "text/markdown", "application/json"]):
        case "application/json":
            response = JsonResponse(policy.policy())
        case "text/markdown":
            response = HttpResponse(policy.markdown(), content_type="text/markdown; charset=utf-8")
        case _:
            context = {
                "title": policy.TITLE,
                "introduction": _with_code(policy.INTRODUCTION),
                "sections": [
                    (heading, [_with_code(sentence) for sentence in sentences])
                    for heading, sentences in policy.sections()
                ],
            }
            response = render(request, "idempotency/policy.html", context)
    return _published(response)


def _published(response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["Accept"])
    patch_cache_control(response, public=True, max_age=3600)
    return response


def _with_code(sentence: str) -> SafeString:
    """Return HTML of a sentence whose code is in backticks."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(sentence)))  # noqa: S308 - escaped before


_CODE = re.compile(r"`([^`]+)`")


class OperationError(serializers.Serializer[Any]):
    """Why an operation ended without a result."""

    code = serializers.CharField(help_text="`gave-up`, `cancelled`, or a problem's code")
    detail = serializers.CharField()


class OperationOut(serializers.Serializer[Any]):
    """An operation as its caller sees it; once `done` it has either `result` or `error`."""

    id = serializers.UUIDField()
    operation = serializers.CharField()
    state = serializers.ChoiceField(choices=["in_progress", "completed", "unknown"])
    done = serializers.BooleanField()
    attempts = serializers.IntegerField(help_text="Runs begun so far")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    retry_at = serializers.DateTimeField(required=False, help_text="When the next run is due")
    result = serializers.JSONField(required=False)
    error = OperationError(required=False)


class OperationView(GenericAPIView[Any]):
    """The status monitor of deferred work: for its owner, 404 to everybody else, 410 once it is purged.

    `Prefer: wait=N` (RFC 7240 §4.3) holds the answer until the work is done, for N seconds at most.
    """

    serializer_class = OperationOut
    pagination_class = None
    filter_backends = ()

    def get(self, request: Request, id: uuid.UUID) -> Response:  # noqa: A002 - the route's own word
        """Say how the operation stands."""
        wait = _preferred_wait(request.headers.get("Prefer", ""))
        view = monitor.find(id=id, scope=scope_of(request=request), wait=wait or 0)
        response = _shown(view)
        if wait is not None:
            response["Preference-Applied"] = f"wait={min(wait, int(monitor.WAIT_AT_MOST))}"
        return response


class OperationCancelView(GenericAPIView[Any]):
    """Cancels an operation that waits and of which nothing has happened; otherwise 409 `too-late`."""

    serializer_class = OperationOut

    def post(self, request: Request, id: uuid.UUID) -> Response:  # noqa: A002 - the route's own word
        """Cancel it; cancelling twice is a success."""
        scope = scope_of(request=request)
        return _shown(monitor.cancel(id=id, scope=scope, by=f"caller {scope}"))


def _shown(view: View) -> Response:
    headers = {"Cache-Control": "no-store"}
    seconds = monitor.retry_after(view)
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    return Response(monitor.representation(view), headers=headers)


_WAIT = re.compile(
    r"(?:^|[,;])\s*wait\s*=\s*\"?([0-9]{1,6})\"?\s*(?=[,;]|$)", re.IGNORECASE | re.ASCII
)


def _preferred_wait(prefer: str) -> int | None:
    """Return the seconds of `Prefer: wait=N`, or None. Source: RFC 7240 §2 and §4.3."""
    found = _WAIT.search(prefer)
    return int(found[1]) if found else None
