"""Requests for the tests of this room: as DRF gives them to a view."""

import io
import json
from typing import Any

from django.test import RequestFactory
from rest_framework.parsers import (
    BaseParser,
    FileUploadParser,
    FormParser,
    JSONParser,
    MultiPartParser,
)
from rest_framework.request import Request

from idempotency.http import problem
from idempotency.http.fingerprint import Fingerprint, fingerprint

PARSERS: tuple[type[BaseParser], ...] = (
    JSONParser,
    FormParser,
    MultiPartParser,
    FileUploadParser,
)


def request_of(
    body: bytes | str = b"",
    content_type: str = "application/json",
    *,
    path: str = "/",
    method: str = "POST",
    **extra: Any,
) -> Request:
    """Return a DRF request with this body, read as from a server: never more than there is."""
    data = body.encode() if isinstance(body, str) else body
    environ: dict[str, Any] = {
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(data)),
        "wsgi.input": io.BytesIO(data),
    }
    http = RequestFactory().generic(method, path, data, content_type, **(environ | extra))
    return Request(http, parsers=[parser() for parser in PARSERS])


def fingerprint_of(request: Request, **arguments: Any) -> Fingerprint:
    """Return the request's fingerprint on a route without arguments."""
    return fingerprint(request=request, **({"route": "r", "path_args": {}} | arguments))


def handled(exc: Exception) -> Any:
    """Return the rendered answer, and its body as `json`."""
    response = problem.exception_handler(exc, {})
    assert response is not None
    response.render()
    response.json = json.loads(response.content)  # type: ignore[attr-defined]
    return response
