"""A plain Django view, as the pipeline sees a view of DRF: it negotiates nothing and answers problems as they are."""

from typing import Any

from django.http import HttpRequest
from rest_framework.response import Response

from idempotency.http.problem import exception_handler


class PlainView:
    """Stands for a function, or for a class-based view, that Django calls with its own request."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        match = request.resolver_match
        self.args: tuple[Any, ...] = match.args if match else ()
        self.kwargs: dict[str, Any] = match.kwargs if match else {}

    def handle_exception(self, exc: Exception) -> Response:
        """Return the problem that an exception means, rendered.

        Raises: the exception itself, where it is no answer.
        """
        response = exception_handler(exc, {"view": self, "request": self._request})
        if response is None:
            raise exc
        response.render()
        return response
