"""A response becomes a stored answer (freeze) and a stored answer a response again (thaw)."""

from typing import cast

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.utils.translation import get_language
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.conf import conf
from idempotency.exceptions import IdempotencyError, Misuse
from idempotency.http.plain import PlainView
from idempotency.types import Answer

REPLAYED = "Idempotent-Replayed"
TOO_LARGE = "too-large"
STREAMING = "streaming"
UNRENDERABLE = "unrenderable"
MAX_CONTENT_TYPE = 100
"""Characters; a longer one has no place in the ledger."""


class Unrenderable(IdempotencyError):
    """The response's data could not be turned into bytes; the work behind it is done."""


def render(
    *, response: HttpResponseBase, view: APIView | PlainView, request: Request | HttpRequest
) -> None:
    """Render a lazy response now, with what the request negotiated, as DRF would do later.

    Does nothing to a response that has its bytes, or streams them.

    Raises:
        Unrenderable: the renderer failed.
        Misuse: a plain Django view returned DRF's response.
        django.db.Error: the database failed meanwhile, which says nothing about the data.
    """
    if not isinstance(response, SimpleTemplateResponse) or response.is_rendered:
        return
    if isinstance(response, Response):
        if isinstance(view, PlainView) or not isinstance(request, Request):
            raise Misuse(
                "A plain Django view returned DRF's Response: put @api_view above @idempotent, or return an "
                "HttpResponse."
            )
        if not getattr(request, "accepted_renderer", None):
            negotiated = view.perform_content_negotiation(request, force=True)
            request.accepted_renderer, request.accepted_media_type = negotiated
        response.accepted_renderer = request.accepted_renderer
        response.accepted_media_type = request.accepted_media_type or ""
        response.renderer_context = view.get_renderer_context()  # type: ignore[attr-defined]
    try:
        response.render()
    except DatabaseError:
        raise
    except Exception as error:
        raise Unrenderable(f"{type(error).__name__}: {error}") from error


def name_language(*, response: HttpResponseBase, request: Request | HttpRequest) -> None:
    """Say in which language the answer is, as LocaleMiddleware will: on a replay it would say the later caller's."""
    if hasattr(request, "LANGUAGE_CODE"):
        response.headers.setdefault("Content-Language", get_language() or "")


def freeze(*, response: HttpResponseBase, max_bytes: int) -> Answer:
    """Return what is kept of a response: status, bytes, content type and the headers allowed.

    A response without bytes to keep gives an answer with body None, and a note that says why:
    `too-large`, `streaming` or `unrenderable` (lazy and not rendered).
    """
    body, note = _body(response, max_bytes)
    content_type = response.headers.get("Content-Type", "")
    if len(content_type) > MAX_CONTENT_TYPE or "\x00" in content_type:
        body, note, content_type = None, TOO_LARGE, ""
    return Answer(
        status=response.status_code,
        body=body,
        content_type=content_type,
        headers=_kept_headers(response),
        note=note,
    )


def thaw(*, answer: Answer, replayed: bool) -> HttpResponse:
    """Return the response that an answer stands for: same status, bytes, content type and headers.

    A replay is marked with `Idempotent-Replayed: true`, and no cache may keep it.

    Raises: Misuse, for an answer without a body: it must never become an empty success (R17).
    """
    if answer.body is None:
        raise Misuse(f"This answer has no body to replay ({answer.note}).")
    # Never a DRF Response: that would be rendered once more, for what this request accepts.
    response = HttpResponse(
        answer.body, status=answer.status, headers=dict(answer.headers), content_type=None
    )
    if answer.content_type:
        response["Content-Type"] = answer.content_type
    else:
        del response["Content-Type"]
    if replayed:
        response[REPLAYED] = "true"
        response["Cache-Control"] = "no-store"
    return response


def _body(response: HttpResponseBase, max_bytes: int) -> tuple[bytes | None, str]:
    if response.streaming:
        return None, STREAMING
    if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
        return None, UNRENDERABLE
    content = bytes(cast("HttpResponse", response).content)
    return (None, TOO_LARGE) if len(content) > max_bytes else (content, "")


def _kept_headers(response: HttpResponseBase) -> dict[str, str]:
    # Content-Encoding says how to read the bytes: without it they are noise.
    names = (*conf.STORED_HEADERS, "Content-Encoding")
    kept = {name: response.headers[name] for name in names if name in response.headers}
    # PostgreSQL takes no NUL in JSON, and no server would send it.
    return {name: value for name, value in kept.items() if "\x00" not in value}
