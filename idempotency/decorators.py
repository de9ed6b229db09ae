"""`@idempotent`: a request with a key is run once, and every repeat of it is answered from the ledger.

    @idempotent(operation="payments.create", required=True)
    def create(self, request): ...

The pipeline, top to bottom: header → scope → fingerprint → claim → run → settle, or the answer of the key that was
found. DRF's own authentication, permissions and throttling come first: it calls a handler only after them (R1). For a
plain Django view that is whatever stands above the decorator, e.g. `@login_required`.
"""

import functools
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any, assert_never, cast

from django.db import Error, connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from idempotency import faultpoints, http, repeats, telemetry, tracing
from idempotency.answers import AnyView, RequestSettler, as_problem, told_of
from idempotency.clock import SYSTEM
from idempotency.conf import conf
from idempotency.exceptions import LedgerUnavailable, Misuse
from idempotency.execution import Ended, Free, Overtaken, Settled, Unknown, execute
from idempotency.faultpoints import asked_for
from idempotency.http import problem
from idempotency.ledger import acquire, owed, values
from idempotency.ledger.claim import Claim, current_claim
from idempotency.ledger.draft import Origin
from idempotency.ledger.phases import Phases
from idempotency.operations.registry import resolver_of
from idempotency.resilience import Deadline, deadline_scope
from idempotency.signature import (
    Config,
    Decorator,
    Handler,
    IdempotentHttpRequest,
    IdempotentRequest,
    require_handler,
)

__all__ = ["METHODS", "Config", "IdempotentHttpRequest", "IdempotentRequest", "idempotent"]

logger = logging.getLogger(__name__)

METHODS = ("POST", "PATCH")


def idempotent(
    *,
    operation: str | None = None,
    required: bool = False,
    methods: Sequence[str] = METHODS,
    scope: Callable[[Any], str] | None = None,
    headers: Sequence[str] = (),
    replay_check: Callable[[Any, Any], None] | None = None,
) -> Decorator:
    """Enforce the `Idempotency-Key` header on a handler: a view's method, an `@action`, a function under `@api_view`,
    or a plain Django view.

    The handler finds its claim at `request.claim` and makes its outside calls through it.

    Args:
        operation: the operation's permanent name; default: the method and the route's name.
        required: whether a request without a key is refused (400 `key-missing`).
        methods: the methods on which a key counts (R2).
        scope: returns whose key it is; default: `IDEMPOTENCY["SCOPE"]` (R5).
        headers: request headers that belong to the fingerprint (R7).
        replay_check: called with view and request before a replay; raises what a caller who may no longer see it
            gets (R1).

    Source: draft-ietf-httpapi-idempotency-key-header-07, an expired Internet-Draft.
    """
    config = Config(
        operation, required, tuple(m.upper() for m in methods), scope, tuple(headers), replay_check
    )

    def decorate(handler: Handler) -> Handler:
        require_handler(handler)

        @functools.wraps(handler)
        def wrapper(*args: Any, **kwargs: Any) -> HttpResponseBase:
            request = next(
                (arg for arg in args[:2] if isinstance(arg, Request | HttpRequest)), None
            )
            if request is None:
                raise Misuse("@idempotent needs the request: decorate what Django or DRF calls.")
            run = functools.partial(handler, *args, **kwargs)
            if request.method not in config.methods or _is_under_way(request):
                return cast(HttpResponseBase, run())
            if isinstance(request, Request):
                return _Exchange(config, request, request.parser_context["view"], run).answer()
            return _answer_plain(config, request, run)

        wrapper.__idempotent__ = config  # type: ignore[attr-defined]
        return cast(Handler, wrapper)

    return cast(Decorator, decorate)


def _is_under_way(request: Request | HttpRequest) -> bool:
    """Whether a decorated handler calls this one, as DRF's `partial_update` calls `update`: a request is one claim."""
    claim = current_claim()
    return claim is not None and getattr(request, "claim", None) is claim


def _answer_plain(
    config: Config, request: HttpRequest, run: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    """Answer a plain view's request; a problem is an answer here, which DRF would have made of it."""
    view = http.plain.PlainView(request)
    try:
        return _Exchange(config, request, view, run).answer()
    except APIException as error:
        return view.handle_exception(error)


class _Exchange:
    """One request on its way through the pipeline."""

    def __init__(
        self,
        config: Config,
        request: Request | HttpRequest,
        view: AnyView,
        handler: Callable[[], HttpResponseBase],
    ) -> None:
        self._config = config
        self._request = request
        self._view = view
        self._handler = handler
        self._phases = Phases(using=conf.DATABASE)
        self._began = SYSTEM.now()

    def answer(self) -> HttpResponseBase:
        owed.pay()
        key = http.header.read_key(request=self._request, required=self._config.required)
        self._identity = values.Identity(
            scope=http.scope.scope_of(request=self._request, scope=self._config.scope),
            operation=self._config.operation or http.route.operation_of(self._request),
            key=key or str(uuid.uuid4()),
        )
        self._fingerprint = http.fingerprint.fingerprint(
            request=self._request,
            route=http.route.route_of(self._request),
            path_args=http.route.arguments_of(self._request),
            headers=(*conf.FINGERPRINT_HEADERS, *self._config.headers),
        )
        deadline = Deadline.from_header(
            self._request.headers.get(conf.DEADLINE_HEADER), budget=conf.REQUEST_BUDGET
        )
        try:
            with (
                deadline_scope(deadline),
                asked_for(self._request.headers.get(faultpoints.HEADER)),
            ):
                return self._run_without_key() if key is None else self._claim_and_run()
        except problem.LedgerDown as down:
            # The caller is told to come back; what to repair is said here.
            logger.error("The ledger cannot be asked: %s", down.__cause__)  # noqa: TRY400 - no 503 needs a traceback
            raise
        finally:
            if self._phases.is_open:
                self._phases.roll_back()

    # -- claim -------------------------------------------------------------------------------------------------------

    def _claim_and_run(self) -> HttpResponseBase:
        patience = Deadline.after(conf.WAIT)
        while True:
            found = self._acquire()
            if isinstance(found, acquire.Won):
                claim = Claim(identity=self._identity, won=found, phases=self._phases)
                return self._run(claim)
            if not isinstance(found, values.InProgress) or patience.expired:
                return self._from_ledger(found)
            self._phases.roll_back()
            # Who waits for another's answer holds no connection meanwhile (R10).
            connections[conf.DATABASE].close()
            SYSTEM.wait(None, min(_POLL, patience.left()))

    def _run_without_key(self) -> HttpResponseBase:
        """Run a request without a key: its key is written, and told, only if there is something to keep (R4)."""
        try:
            self._phases.open()
        except Error as error:
            self._phases.abandon()
            raise problem.LedgerDown from error
        won = acquire.made_up(
            identity=self._identity, fingerprint=self._fingerprint, origin=self._origin()
        )
        claim = Claim(identity=self._identity, phases=self._phases, won=won, keyless=True)
        try:
            response = self._run(claim)
        except APIException as error:
            if not claim.exists:
                raise
            response = http.problem.respond(exc=error, view=self._view)
        if claim.exists:
            response.headers[http.header.NAME] = self._identity.key
        return response

    def _acquire(self) -> acquire.Acquired:
        try:
            self._phases.open()
            return acquire.acquire(
                phases=self._phases,
                identity=self._identity,
                fingerprint=self._fingerprint,
                origin=self._origin(),
            )
        except Error as error:
            self._phases.abandon()
            raise problem.LedgerDown from error
        except LedgerUnavailable as error:
            raise problem.LedgerDown from error

    def _origin(self) -> Origin:
        headers = self._request.headers
        return Origin(
            accepted=getattr(self._request, "accepted_media_type", None) or "",
            request_id=headers.get("X-Request-Id", ""),
            traceparent=tracing.current(headers.get("Traceparent", "")),
        )

    # -- run and settle ----------------------------------------------------------------------------------------------

    def _run(self, claim: Claim) -> HttpResponseBase:
        resolver = resolver_of(claim.operation)
        settler = RequestSettler(
            view=self._view, request=self._request, ended=resolver.ended if resolver else None
        )
        cast(IdempotentRequest, self._request).claim = claim
        ended = execute(claim=claim, run=self._handler, settler=settler)
        _tell(claim, ended, SYSTEM.now() - self._began)
        return self._response(claim, ended, settler)

    def _response(self, claim: Claim, ended: Ended, settler: RequestSettler) -> HttpResponseBase:
        match ended:
            case Settled():
                if settler.response is not None:
                    return settler.response
                resource = claim.about.resource or None
                raise problem.ResultUnavailable(operation_ref=str(claim.id), resource=resource)
            case Free(error=None):
                return cast(HttpResponseBase, settler.response)
            case Free(error=error):
                raise as_problem(claim, error)
            case Unknown():
                raise problem.OutcomeUnknown(
                    repeated=False,
                    operation_ref=str(claim.id) if claim.exists else None,
                    resource=claim.about.resource or None,
                ) from ended.error
            case Overtaken():
                return self._from_ledger(self._acquire())
            case _:
                assert_never(ended)

    # -- the answer of a key that was found --------------------------------------------------------------------------

    def _from_ledger(self, found: acquire.Acquired) -> HttpResponseBase:
        if isinstance(found, values.Reused | values.StillUnknown):
            repeats.note_refusal(found, phases=self._phases)
        elif not isinstance(found, acquire.Won):
            # A key that is free by now was claimed, which is undone in the end: this request has had its run.
            if isinstance(found, values.Replay):
                # Before the transaction ends: a host's get_queryset() may lock rows, as it does for the handler.
                repeats.require_allowed(self._view, self._request, self._config.replay_check)
            self._phases.leave()
        told = told_of(found)
        telemetry.emit(telemetry.KeyMet(self._identity.operation, told.word, told.key_id))
        if isinstance(told.answer, Exception):
            raise told.answer
        if isinstance(found, values.Replay):
            asked = self._request.headers.get("X-Request-Id", "")
            repeats.note_replay(told.answer, key_id=found.found.id, request_id=asked)
        return told.answer


_POLL = 0.05
"""Seconds between two looks at a key that a waiting request hopes to see settled."""


def _tell(claim: Claim, ended: Ended, seconds: float) -> None:
    name, key_id = type(ended).__name__.lower(), str(claim.id) if claim.exists else ""
    telemetry.emit(telemetry.RunEnded(claim.operation, "request", name, seconds, key_id))
