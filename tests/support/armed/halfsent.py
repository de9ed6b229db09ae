"""A middleware that lets half of an answer's bytes leave before its process is struck (P5)."""

from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from tests.support.armed.plan import Plan

POINT = "half_sent"


class HalfSent:
    """Cuts the answer in two, where the request's key says so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self._get_response(request)
        plan = Plan.of(request.headers.get("Idempotency-Key", ""))
        if plan is None or plan.point != POINT or not isinstance(answer, HttpResponse):
            return answer
        headers = {**answer.headers, "Content-Length": str(len(answer.content))}
        halves = _halves(answer.content, plan)
        return StreamingHttpResponse(halves, status=answer.status_code, headers=headers)


def _halves(whole: bytes, plan: Plan) -> Iterator[bytes]:
    half = len(whole) // 2
    yield whole[:half]
    plan.strike(POINT)
    yield whole[half:]
