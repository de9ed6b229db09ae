"""What a host registers: what deferred work is done by, how the other side is asked, how its answer is finished."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from django.http.response import HttpResponseBase
from django.views import View

from idempotency.conf import conf
from idempotency.exceptions import CallFailed, CallRejected, Misuse
from idempotency.ledger import Claim
from idempotency.resilience import RetryPolicy
from idempotency.types import LookUp, OpenStep, OutsideResult, State

# -- deferred work -----------------------------------------------------------------------------------------------------


class Handler(Protocol):
    """Does deferred work: like a view's handler, in the phases of its claim; returns the result as JSON."""

    def __call__(self, *, claim: Claim, input: Any) -> Any: ...  # noqa: A002 - the contract's own word


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """An operation that can be deferred, as it was registered. What is None follows the settings."""

    name: str
    handler: Handler
    own_policy: RetryPolicy | None
    own_max_attempts: int | None
    own_time_limit: float | None
    refusal: Callable[[], CallFailed | None] | None

    @property
    def policy(self) -> RetryPolicy:
        """The pauses between runs; only `base` and `cap` of it count here."""
        return self.own_policy or RetryPolicy(base=conf.RETRY_BASE, cap=conf.RETRY_CAP)

    @property
    def max_attempts(self) -> int:
        """Runs in one cycle, the first included."""
        return self.own_max_attempts or conf.OPERATION_MAX_ATTEMPTS

    @property
    def time_limit(self) -> float:
        """Seconds for one run."""
        return self.own_time_limit or conf.OPERATION_TIME_LIMIT

    @property
    def lease(self) -> float:
        """Seconds for which a run owns its key: as much longer than its time limit as the settings say (R35)."""
        return self.time_limit + max(1.0, conf.LEASE - conf.OPERATION_TIME_LIMIT)


H = TypeVar("H", bound=Handler)

_definitions: dict[str, Definition] = {}


def operation(
    name: str,
    *,
    policy: RetryPolicy | None = None,
    max_attempts: int | None = None,
    time_limit: float | None = None,
    refusal: Callable[[], CallFailed | None] | None = None,
) -> Callable[[H], H]:
    """Register a handler of deferred work.

        @operation("receipts.send", max_attempts=5)
        def send(*, claim: Claim, input: dict) -> dict: ...

    Whether a call may be repeated under its key is declared per call, by the `Downstream` of its `outside_call`.

    Args:
        name: permanent: rows refer to it.
        policy: the pauses between runs (`base`, `cap`).
        max_attempts: runs in one cycle, the first included (R33).
        time_limit: seconds for one run.
        refusal: says why a run would be refused at once, e.g. a guard's `refusal`; while it does, no run is begun and
            no attempt is counted.

    Raises:
        Misuse: the name has another handler, or a number cannot work.
    """
    if max_attempts is not None and max_attempts < 1:
        raise Misuse(
            f"{name!r}: max_attempts counts the first run: at least 1, not {max_attempts}."
        )
    if time_limit is not None and time_limit <= 0:
        raise Misuse(f"{name!r}: time_limit must be more than 0 seconds, not {time_limit}.")

    def register(handler: H) -> H:
        known = _definitions.get(name)
        if known is not None and _address(known.handler) != _address(handler):
            raise Misuse(f"{name!r} has a handler already: {_address(known.handler)}.")
        _definitions[name] = Definition(
            name=name,
            handler=handler,
            own_policy=policy,
            own_max_attempts=max_attempts,
            own_time_limit=time_limit,
            refusal=refusal,
        )
        return handler

    return register


def definition_of(name: str) -> Definition:
    """Return what was registered under that name.

    Raises:
        Misuse: nothing was.
    """
    try:
        return _definitions[name]
    except KeyError:
        raise Misuse(
            f"No handler is registered for {name!r}: decorate one with @operation."
        ) from None


def definitions() -> tuple[Definition, ...]:
    """Return all that this process can run."""
    return tuple(_definitions.values())


def _address(handler: Handler) -> str:
    return f"{getattr(handler, '__module__', '')}.{getattr(handler, '__qualname__', handler)}"


# -- resolvers ---------------------------------------------------------------------------------------------------------


class Resolver:
    """How an operation with outside calls is resolved when nobody knows yet. Subclass it and register it.

    Attributes:
        view: the view class whose renderers and exception handler render the answer as the view itself would have;
            for a plain Django view, `django.views.View`.
    """

    view: "type[View[Any]]"

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

    def by_hand(self, *, step: OpenStep, reference: str) -> OutsideResult:
        """Return what the other side would have said of a step that a person has seen applied there.

        Called with no transaction open. Where the other side can be asked about that id, ask it, and return its own
        word: ids are mistyped, and read from the line above.

        Args:
            reference: the other side's id, as the person read it.

        Raises:
            NotProven: the id is none, or another operation's; nothing is settled.
        """
        return OutsideResult(reference=reference, record={"id": reference, "status": "succeeded"})

    def verdict(self, rejected: CallRejected) -> Exception:
        """Return what deferred work ends with where a look-up found it refused: what its handler would have raised."""
        return rejected

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
