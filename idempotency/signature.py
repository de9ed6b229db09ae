"""What `@idempotent` is given and gives back, for people and for type checkers."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from django.http import HttpRequest
from rest_framework.request import Request

from idempotency.exceptions import Misuse
from idempotency.ledger.claim import Claim

P = ParamSpec("P")
R = TypeVar("R")
Handler = TypeVar("Handler", bound=Callable[..., Any])


class IdempotentRequest(Request):
    """What a decorated handler is given: annotate `request` with it to have `request.claim` typed."""

    claim: Claim


class IdempotentHttpRequest(HttpRequest):
    """The same for a plain Django view."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Config:
    """What a decorated handler was given; found on it as `__idempotent__`."""

    operation: str | None
    required: bool
    methods: tuple[str, ...]
    scope: Callable[[Any], str] | None
    headers: tuple[str, ...]
    replay_check: Callable[[Any, Any], None] | None


class Decorator(Protocol):
    """Gives the handler back with its own signature; a function under `@api_view` as one that takes any request."""

    @overload
    def __call__(
        self, handler: Callable[Concatenate[IdempotentRequest, P], R], /
    ) -> Callable[Concatenate[Request, P], R]: ...

    @overload
    def __call__(self, handler: Handler, /) -> Handler: ...


def require_handler(given: Any) -> None:
    """Refuse what is decorated at the wrong place.

    Raises: Misuse.
    """
    if isinstance(given, type) or hasattr(given, "cls") or hasattr(given, "view_class"):
        raise Misuse(
            "@idempotent decorates a handler: a method of a view, or a function *under* @api_view."
        )
    if inspect.iscoroutinefunction(given):
        raise Misuse("@idempotent decorates no async handler: Django's transactions are not.")
