"""Exceptions become `application/problem+json`: as DRF's exception handler, and in a settlement."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError, connections
from django.http import Http404
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import set_rollback

from idempotency.conf import conf
from idempotency.exceptions import CallError, LedgerUnavailable, Refused
from idempotency.http.problem import refusals
from idempotency.http.problem.entries import Entry
from idempotency.http.problem.kinds import (
    LedgerDown,
    Problem,
    from_call_error,
    from_refusal,
    slug,
)
from idempotency.http.problem.published import catalogue

MEDIA_TYPE = "application/problem+json"


class ProblemResponse(Response):
    """A problem, rendered as `application/problem+json` whatever renderer was negotiated."""

    @property
    def rendered_content(self) -> bytes:  # type: ignore[override]
        self["Content-Type"] = MEDIA_TYPE
        content: bytes = JSONRenderer().render(self.data)
        return content


def exception_handler(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """Answer an exception with a problem; None for what DRF would not handle either.

    For `REST_FRAMEWORK["EXCEPTION_HANDLER"]`. Source: RFC 9457 §3.
    """
    known = _as_api_exception(exc)
    if known is None:
        return None
    set_rollback()
    body = body_of(known)
    if request := context.get("request"):
        refusals.tell(request=request, code=body["code"], status=known.status_code)
    return ProblemResponse(body, status=known.status_code, headers=_headers(known))


class Answering(Protocol):
    """What answers exceptions: DRF's APIView, or what stands for a plain view."""

    def handle_exception(self, exc: Exception) -> Response:
        """Return the answer, or raise what is none."""


def respond(*, exc: Exception, view: Answering) -> Response:
    """Return the response that the view's own exception handler gives to a verdict.

    Does not touch the transaction: DRF's handler marks every connection under ATOMIC_REQUESTS for
    rollback, which would undo the settlement of which this answer is a part.

    Raises: the exception itself, where the handler does not know it.
    """
    marks = [
        (connection, connection.needs_rollback)
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
    ]
    try:
        return view.handle_exception(exc)
    finally:
        for connection, mark in marks:
            connection.needs_rollback = mark


def body_of(exc: exceptions.APIException) -> dict[str, Any]:
    """Return the problem object of an exception.

    Members: type, title, status, detail, code, then what the problem adds; `errors` keeps the
    field errors of a validation as DRF has them. A code without a page has the type `about:blank`.

    Source: RFC 9457 §3.1, §4.2.1.
    """
    code = _code(exc)
    entries = catalogue()
    published = code if code in entries else exc.entry.code if isinstance(exc, Problem) else None
    body: dict[str, Any] = {
        "type": f"{conf.PROBLEM_BASE}{published}/" if published else "about:blank",
        "title": entries[published].title if published else _phrase(exc.status_code),
        "status": exc.status_code,
    }
    if isinstance(exc.detail, list | dict):
        body["detail"] = _sentence(exc)
    else:
        body["detail"] = str(exc.detail)
    body["code"] = code
    if isinstance(exc, Problem):
        body.update(exc.members)
    elif published:
        body.update(_promises(entries[published]))
    if isinstance(exc.detail, list | dict):
        body["errors"] = exc.detail
    return body


def _as_api_exception(exc: Exception) -> exceptions.APIException | None:
    match exc:
        case exceptions.APIException():
            return exc
        case Http404():
            return exceptions.NotFound(*exc.args)
        case PermissionDenied():
            return exceptions.PermissionDenied(*exc.args)
        case CallError():
            return from_call_error(exc)
        case LedgerUnavailable() | OperationalError() | InterfaceError():
            # Also before the ledger is asked: who calls is looked up in the same database (R19).
            return LedgerDown()
        case Refused():
            return from_refusal(exc)
    return None


def _headers(exc: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if auth_header := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = str(auth_header)
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(wait))
    if isinstance(exc, Problem) and "policy" in exc.members:
        headers["Link"] = f'<{exc.members["policy"]}>; rel="describedby"'
    return headers


def _code(exc: exceptions.APIException) -> str:
    own = getattr(exc.detail, "code", None)
    return slug(own or exc.default_code)


def _sentence(exc: exceptions.APIException) -> str:
    if isinstance(exc.detail, dict) and isinstance(exc.detail.get("detail"), str):
        return str(exc.detail["detail"])
    if isinstance(exc, exceptions.ValidationError):
        return "The input is not valid; errors says why."
    return str(exc.default_detail)


def _promises(entry: Entry) -> dict[str, bool]:
    promises = {"retryable": entry.retryable, "safe_new_key": entry.safe_new_key}
    return {name: value for name, value in promises.items() if value is not None}


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
