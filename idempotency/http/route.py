"""Where a request was sent: its route and the arguments in its path."""

from collections.abc import Mapping

from django.http import HttpRequest
from rest_framework.request import Request


def operation_of(request: HttpRequest | Request) -> str:
    """Return the name of an operation that was not given one: the method and the route's name."""
    match = request.resolver_match
    name = (match.view_name or match.route) if match else request.path
    return f"{request.method} {name}"[:100]


def route_of(request: HttpRequest | Request) -> str:
    """Return the pattern of the route, which stands for every path that it matches."""
    return request.resolver_match.route if request.resolver_match else request.path


def arguments_of(request: HttpRequest | Request) -> Mapping[str, object]:
    """Return the concrete arguments in the path, positional ones under their number."""
    if isinstance(request, Request):
        args, kwargs = request.parser_context["args"], request.parser_context["kwargs"]
    else:
        match = request.resolver_match
        args, kwargs = (match.args, match.kwargs) if match else ((), {})
    return {str(number): value for number, value in enumerate(args)} | dict(kwargs)
