"""Where a request was sent: its route and the arguments in its path."""

from collections.abc import Mapping

from rest_framework.request import Request


def operation_of(request: Request) -> str:
    """Return the name of an operation that was not given one: the method and the route's name."""
    match = request.resolver_match
    name = (match.view_name or match.route) if match else request.path
    return f"{request.method} {name}"[:100]


def route_of(request: Request) -> str:
    """Return the pattern of the route, which stands for every path that it matches."""
    return request.resolver_match.route if request.resolver_match else request.path


def arguments_of(request: Request) -> Mapping[str, object]:
    """Return the concrete arguments in the path, positional ones under their number."""
    context = request.parser_context
    positional = {str(number): value for number, value in enumerate(context["args"])}
    return positional | dict(context["kwargs"])
