"""What a host registers: how to ask the other side, and how to finish what it then says."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from django.http.response import HttpResponseBase
from rest_framework.views import APIView

from idempotency.exceptions import Misuse
from idempotency.ledger import Claim
from idempotency.types import LookUp, OpenStep, State


class Resolver:
    """How an operation with outside calls is resolved when nobody knows yet. Subclass it and register it.

    Attributes:
        view: the view class whose renderers and exception handler render the answer as the view itself would have.
    """

    view: type[APIView]

    def look_up(self, *, step: OpenStep) -> LookUp:
        """Ask the other side whether the step was applied. Called with no transaction open.

        Raises:
            CallError: it could not be asked; that is no verdict.
        """
        raise NotImplementedError

    def finish(self, *, claim: Claim, endings: Mapping[str, LookUp]) -> HttpResponseBase:
        """Do what the handler would have done after its calls, and return its very response.

        Called in a phase of the claim. `endings` has each step of the journal: `Applied`, `Rejected` or `Absent`.
        Steps that are missing can be made here through `claim.outside_call`.

        Raises:
            rest_framework.exceptions.APIException: the verdict that the view would have given.
        """
        raise NotImplementedError

    def ended(self, *, claim: Claim, state: State, error: BaseException | None) -> None:
        """End the business rows of a key that is settled without success; in the settling transaction.

        Args:
            state: `RELEASED` (nothing happened, the key may be tried again) or `COMPLETED` (a verdict).
        """


R = TypeVar("R", bound=type[Resolver])

_resolvers: dict[str, Resolver] = {}


def resolver(operation: str) -> Callable[[R], R]:
    """Register a `Resolver` class for an operation's name.

    Raises:
        Misuse: the operation has another one already.
    """

    def register(cls: R) -> R:
        known = _resolvers.get(operation)
        if known is not None and type(known).__qualname__ != cls.__qualname__:
            raise Misuse(f"{operation!r} has a resolver already: {type(known).__qualname__}.")
        _resolvers[operation] = cls()
        return cls

    return register


def resolver_of(operation: str) -> Resolver | None:
    """Return the resolver of an operation, or None."""
    return _resolvers.get(operation)
