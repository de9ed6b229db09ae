"""How the endings of a request are written: the answer is rendered, frozen and kept with the key (R14–R17).

The same settler serves the request itself and the reconciler that finishes it later, so that both give one answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, assert_never, cast

from django.db import Error, InterfaceError, OperationalError
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from idempotency import http
from idempotency.conf import conf
from idempotency.exceptions import CallError, CallRejected, LedgerUnavailable, Misuse
from idempotency.http import problem
from idempotency.http.plain import PlainView
from idempotency.http.response import UNRENDERABLE, Unrenderable
from idempotency.ledger import lookups, settlement, values
from idempotency.ledger.acquire import Acquired, Won
from idempotency.ledger.claim import Claim
from idempotency.ledger.values import Settlement
from idempotency.resilience import is_outage
from idempotency.types import Answer, State

AnyView = APIView | PlainView
REFUSALS = frozenset({400, 401, 403, 404, 405, 406, 408, 413, 415, 425, 429})
"""Raised before any effect, they leave the key free: the caller may correct the request and try again (R14)."""


class Ended(Protocol):
    """Tells business rows that their key was settled without success, in the settling transaction (R13)."""

    def __call__(self, *, claim: Claim, state: State, error: BaseException | None) -> None: ...


class RequestSettler:
    """Writes the endings of one request.

    Attributes:
        response: what the caller gets, once there is something to get.
    """

    def __init__(
        self,
        *,
        view: AnyView,
        request: Request | HttpRequest,
        by: str = "request",
        evidence: dict[str, object] | None = None,
        ended: Ended | None = None,
    ) -> None:
        self.response: HttpResponseBase | None = None
        self._view = view
        self._request = request
        self._settlement = Settlement(by=by, evidence=evidence or {})
        self._ended = ended

    def is_failure(self, value: HttpResponseBase) -> bool:
        """Whether a returned response is a failure: a 5xx, which settles nothing.

        Raises:
            Misuse: it is no response.
        """
        if not isinstance(value, HttpResponseBase):
            raise Misuse(
                f"An idempotent handler must return a response, not {type(value).__name__}."
            )
        self.response = value
        return value.status_code >= 500

    def completed(self, claim: Claim, value: HttpResponseBase) -> bool:
        """Keep the answer that the handler returned, or its 202 where the work was deferred."""
        answer = self._keep(value)
        if not claim.exists:
            return True
        # What was promised and undone again by the handler is not promised: its answer is like any other.
        return self._promised(claim, answer) or settlement.complete(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            answer=answer,
            settlement=self._settlement,
            called=claim.may_have_called(),
            about=claim.about,
            draft=claim.draft,
            written=claim.written,
        )

    def _promised(self, claim: Claim, answer: Answer) -> bool:
        return claim.promised is not None and settlement.promise(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            answer=answer,
            about=claim.about,
            delay=claim.promised.delay,
        )

    def is_final(self, error: BaseException) -> bool:
        """Whether the error is a verdict: an answer about the business, not about the request or the machine."""
        if isinstance(error, CallRejected):
            return True
        if isinstance(error, ValidationError | Http404 | PermissionDenied):
            return False
        return (
            isinstance(error, APIException)
            and error.status_code < 500
            and error.status_code not in REFUSALS
        )

    def refused(self, claim: Claim, error: BaseException) -> bool:
        """Keep a verdict, provided that nothing was applied."""
        if not claim.exists:
            return False
        wrote = settlement.complete(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            answer=self.answer_to(error),
            settlement=self._settlement,
            called=claim.may_have_called(),
            about=claim.about,
            refusal=True,
            draft=claim.draft,
            written=claim.written,
        )
        if wrote:
            self._tell(claim, State.COMPLETED, error)
        return wrote

    def undone(self, claim: Claim, error: BaseException | None) -> bool:
        """Release the key, provided that the journal agrees that nothing happened."""
        wrote = settlement.release(
            connection=claim.phases.connection,
            key_id=claim.id,
            token=claim.token,
            settlement=self._settlement,
        )
        if wrote:
            lookups.watch(
                connection=claim.phases.connection, key_id=claim.id, after=conf.RECONCILE_EVERY
            )
            self._tell(claim, State.RELEASED, error)
        return wrote

    def answer_to(self, error: BaseException) -> Answer:
        """Return the answer that a verdict gets from the view's own exception handler."""
        if isinstance(error, CallError):
            error = problem.from_call_error(error)
        return self._keep(problem.respond(exc=cast(Exception, error), view=self._view))

    def _tell(self, claim: Claim, state: State, error: BaseException | None) -> None:
        if self._ended is not None:
            self._ended(claim=claim, state=state, error=error)

    def _keep(self, response: HttpResponseBase) -> Answer:
        """Render and freeze; what cannot be rendered is done all the same, and says so (R17)."""
        self.response = response
        try:
            http.response.render(response=response, view=self._view, request=self._request)
        except Unrenderable:
            self.response = None
            return Answer(response.status_code, None, "", {}, note=UNRENDERABLE)
        http.response.name_language(response=response, request=self._request)
        return http.response.freeze(response=response, max_bytes=conf.MAX_RESPONSE_BYTES)


def as_problem(claim: Claim, error: BaseException | None) -> BaseException:
    """Return what the caller of a run that changed nothing is told: a problem, or the error as it is."""
    if isinstance(error, CallError):
        ref = str(claim.id) if claim.called else None
        told: BaseException = problem.from_call_error(error, operation_ref=ref)
    elif isinstance(error, LedgerUnavailable | Error) and _database_failed(error):
        if is_outage(error):
            # Another server may take writes by then: the next claim is made on a new connection.
            claim.phases.abandon()
        told = problem.LedgerDown()
    else:
        return cast(BaseException, error)
    told.__cause__ = error
    return told


def _database_failed(error: LedgerUnavailable | Error) -> bool:
    """Whether the database failed, and not what it was asked; then nothing of the request was kept."""
    outages = (LedgerUnavailable, OperationalError, InterfaceError)
    return isinstance(error, outages) or is_outage(error)


# -- the answer of a key that was found ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """What a request is told that met somebody's key: a replay, or the problem to raise."""

    word: str
    """For people and counters: `replay`, `in-progress`, `unknown`, `reused`, `expired` or `unavailable`."""
    answer: HttpResponseBase | Exception
    key_id: str = ""


def told_of(found: Acquired) -> Told:
    """Say what the ledger's verdict on a found key means for the caller (R9, R10, R16, R17, R20)."""
    match found:
        case values.Replay(found=key, answer=answer):
            return Told("replay", http.response.thaw(answer=answer, replayed=True), str(key.id))
        case Won():
            # It was free for a moment, but this request has had its run.
            return Told("in-progress", problem.InProgress(retry_after=1), str(found.id))
        case values.InProgress(retry_after=seconds, found=key):
            return _told("in-progress", key, problem.InProgress, retry_after=seconds)
        case values.StillUnknown(found=key):
            wait = key.retry_after
            return _told("unknown", key, problem.OutcomeUnknown, repeated=True, retry_after=wait)
        case values.Reused(found=key, differing=parts):
            return _told("reused", key, problem.KeyReused, first=key.state, differing=parts)
        case values.ResultExpired(found=key):
            return _told("expired", key, problem.ResultExpired)
        case values.ResultUnavailable(found=key):
            return _told("unavailable", key, problem.ResultUnavailable)
        case _:
            assert_never(found)


def _told(
    word: str, key: values.Found | None, kind: Callable[..., Exception], **more: object
) -> Told:
    if key is None:
        return Told(word, kind(**more))
    about = {"operation_ref": str(key.id), "resource": key.resource or None}
    return Told(word, kind(**about, **more), str(key.id))
