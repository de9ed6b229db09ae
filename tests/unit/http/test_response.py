"""Answers (R15–R17): what is kept of a response, and the replay that is made of it, byte for byte."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.middleware.gzip import GZipMiddleware
from django.middleware.http import ConditionalGetMiddleware
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.permissions import AllowAny
from rest_framework.renderers import (
    AdminRenderer,
    BaseRenderer,
    JSONRenderer,
    StaticHTMLRenderer,
)
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from idempotency.exceptions import Misuse
from idempotency.http.response import Unrenderable, freeze, render, thaw
from idempotency.types import Answer

MAX = 2**20


class View(APIView):
    """Answers with what the test gave it, through the whole of DRF."""

    permission_classes = [AllowAny]
    authentication_classes = ()
    renderer_classes: Any = [JSONRenderer, StaticHTMLRenderer]
    answer: Callable[[APIView, Request], HttpResponseBase] | None = None

    def post(self, request: Request) -> HttpResponseBase:
        assert self.answer is not None
        return self.answer(self, request)


def answer_with(
    answer: Callable[[APIView, Request], HttpResponseBase], **extra: Any
) -> HttpResponseBase:
    request = RequestFactory().post("/", b"{}", "application/json", **extra)
    response = View.as_view(answer=answer)(request)
    lazy = getattr(response, "render", None)
    return lazy() if lazy else response


def kept(response: HttpResponseBase, **extra: Any) -> tuple[HttpResponseBase, Answer]:
    """Return what the caller got, and what was kept of it while it was on its way."""
    answers = []

    def answer(view: APIView, request: Request) -> HttpResponseBase:
        render(response=response, view=view, request=request)
        answers.append(freeze(response=response, max_bytes=MAX))
        return response

    return answer_with(answer, **extra), answers[0]


def replay_of(answer: Answer, **extra: Any) -> HttpResponse:
    response = answer_with(lambda view, request: thaw(answer=answer, replayed=True), **extra)
    assert isinstance(response, HttpResponse)
    return response


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(json_values, st.sampled_from([200, 201, 202, 204, 207, 402, 409, 422, 499]))
def test_a_replay_has_the_same_status_bytes_and_content_type(data: Any, status: int) -> None:
    """R16, D7: through DRF's own finalize and render, both times."""
    first, answer = kept(Response(data, status=status))
    assert isinstance(first, HttpResponse)
    again = replay_of(answer)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.get("Content-Type") == first.headers.get("Content-Type")
    assert again.content == answer.body


@given(st.binary(max_size=300), st.sampled_from(["text/html; charset=latin-1", "image/png", "x/y"]))
def test_a_plain_response_of_any_bytes_comes_back_as_it_was(body: bytes, content_type: str) -> None:
    """R16."""
    first, answer = kept(HttpResponse(body, content_type=content_type))
    assert isinstance(first, HttpResponse)
    again = replay_of(answer)
    assert again.content == first.content == body
    assert again["Content-Type"] == first["Content-Type"] == content_type


@pytest.mark.parametrize("accept", ["*/*", "text/html", "application/json;q=0.1"])
def test_a_replay_ignores_what_the_repeat_accepts(accept: str) -> None:
    """R16."""
    first, answer = kept(Response({"a": 1}))
    again = replay_of(answer, HTTP_ACCEPT=accept)
    assert again["Content-Type"] == first["Content-Type"] == "application/json"
    assert again.content == b'{"a":1}'


def test_the_first_is_rendered_with_what_it_accepts() -> None:
    first, answer = kept(Response("<b>"), HTTP_ACCEPT="text/html")
    assert answer.content_type.startswith("text/html")
    assert first["Content-Type"] == answer.content_type


def test_a_replay_is_marked_and_kept_by_no_cache_and_a_first_answer_is_neither() -> None:
    """R16."""
    _, answer = kept(Response({"a": 1}))
    again = replay_of(answer)
    assert again["Idempotent-Replayed"] == "true"
    assert again["Cache-Control"] == "no-store"
    first = thaw(answer=answer, replayed=False)
    assert "Idempotent-Replayed" not in first.headers
    assert "Cache-Control" not in first.headers


def test_only_allowed_headers_are_kept() -> None:
    """R15, B5, D8."""
    allowed = {
        "Location": "/api/payments/1/",
        "Content-Location": "/here",
        "Content-Language": "de",
        "ETag": '"1"',
        "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
        "Link": "</x>; rel=next",
        "Retry-After": "3",
    }
    others = {
        "WWW-Authenticate": "Token",
        "X-Request-ID": "1",
        "X-RateLimit-Remaining": "3",
        "Date": "today",
        "X-CSRFToken": "t",
        "Cache-Control": "private",
    }
    response = Response({}, status=201, headers=allowed | others)
    response.set_cookie("sessionid", "secret")
    _, answer = kept(response)
    assert answer.headers == allowed
    again = replay_of(answer)
    assert not again.cookies
    assert {name: again[name] for name in allowed} == allowed
    assert not set(others) - {"Cache-Control"} & set(again.headers)


def test_a_header_that_the_database_cannot_hold_is_left_out() -> None:
    """D12."""
    _, answer = kept(Response({}, headers={"Location": "/\x00", "ETag": '"1"'}))
    assert answer.headers == {"ETag": '"1"'}


@override_settings(IDEMPOTENCY={"STORED_HEADERS": ["X-Reference"]})
def test_a_host_says_which_headers_are_kept() -> None:
    """R15."""
    _, answer = kept(Response({}, headers={"X-Reference": "7", "Location": "/x"}))
    assert answer.headers == {"X-Reference": "7"}


def test_encoded_bytes_keep_the_word_that_says_how_to_read_them() -> None:
    """R16: the bytes alone would be noise."""
    response = HttpResponse(b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    _, answer = kept(response)
    assert replay_of(answer)["Content-Encoding"] == "gzip"


def test_no_content_stays_no_content() -> None:
    """R16, D7."""
    first, answer = kept(Response(status=204))
    again = replay_of(answer)
    assert answer.body == b""
    assert (again.status_code, again.content) == (204, b"")
    assert "Content-Type" not in again.headers
    assert "Content-Type" not in first.headers


@pytest.mark.parametrize(
    ("response", "note"),
    [
        (StreamingHttpResponse([b"a", b"b"]), "streaming"),
        (FileResponse([b"a"]), "streaming"),
        (HttpResponse(b"x" * (MAX + 1)), "too-large"),
        (Response({"x": "y" * MAX}), "too-large"),
        (HttpResponse(b"x", content_type="multipart/mixed; boundary=" + "x" * 99), "too-large"),
    ],
)
def test_what_cannot_be_kept_is_noted_and_the_caller_gets_it_all_the_same(
    response: HttpResponseBase, note: str
) -> None:
    """R17, D11, D13."""
    first, answer = kept(response)
    assert first is response
    assert first.status_code == answer.status == 200
    assert (answer.body, answer.note) == (None, note)
    response.close()


def test_an_answer_of_the_greatest_length_is_kept() -> None:
    """R17, D13."""
    _, answer = kept(HttpResponse(b"x" * MAX))
    assert answer.body == b"x" * MAX


@pytest.mark.parametrize("note", ["streaming", "too-large", "unrenderable"])
def test_an_answer_without_a_body_is_never_replayed_as_an_empty_success(note: str) -> None:
    """R17, D11."""
    with pytest.raises(Misuse):
        thaw(answer=Answer(200, None, "", {}, note), replayed=True)


@pytest.mark.parametrize("data", [{"x": object()}, {"x": float("inf")}, {object(): 1}])
def test_what_the_renderer_cannot_write_is_named(data: Any) -> None:
    """R17, D12."""
    response = Response(data)

    def answer(view: APIView, request: Request) -> HttpResponseBase:
        with pytest.raises(Unrenderable):
            render(response=response, view=view, request=request)
        assert freeze(response=response, max_bytes=MAX).note == "unrenderable"
        return HttpResponse()

    answer_with(answer)


def test_a_database_that_fails_meanwhile_is_not_called_unrenderable() -> None:
    """R17, R19."""

    class Lazy(BaseRenderer):
        media_type = "text/lazy"
        format = "lazy"

        def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
            raise OperationalError("gone")

    request = Request(RequestFactory().post("/"))
    view = View()
    view.setup(request._request)
    view.renderer_classes = [Lazy]
    with pytest.raises(OperationalError):
        render(response=Response({}), view=view, request=request)


def test_what_drf_can_write_is_written() -> None:
    """D12."""
    now = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    _, answer = kept(Response({"b": now, "c": "\u0000"}))
    assert answer.body == b'{"b":"2024-01-02T00:00:00Z","c":"\\u0000"}'


def test_a_response_made_before_negotiation_is_rendered_too() -> None:
    """E.g. for an exception in `initial()`."""
    request = Request(RequestFactory().post("/", HTTP_ACCEPT="application/json"))
    view = View()
    view.setup(request._request)
    view.renderer_classes = [AdminRenderer, JSONRenderer]
    view.request = request
    view.format_kwarg = None
    response = Response({"a": 1})
    render(response=response, view=view, request=request)
    assert freeze(response=response, max_bytes=MAX).body == b'{"a":1}'


def test_rendering_twice_renders_once() -> None:
    response = Response({"a": 1})
    kept(response)
    response.data = {"a": 2}
    render(response=response, view=View(), request=Request(HttpRequest()))
    assert response.content == b'{"a":1}'


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_replay_passes_middleware_unharmed(method: str, encoding: str) -> None:
    """R16: in particular it never becomes a 304, which would hide it."""
    body = b'{"a": "' + b"x" * 500 + b'"}'
    answer = Answer(201, body, "application/json", {"ETag": '"1"', "Location": "/x"})
    http = RequestFactory().generic(
        method, "/", HTTP_IF_NONE_MATCH='"1"', HTTP_ACCEPT_ENCODING=encoding
    )

    view = ConditionalGetMiddleware(lambda _: thaw(answer=answer, replayed=True))
    chain: Any = GZipMiddleware(CommonMiddleware(view))
    again = chain(http)
    assert again.status_code == 201
    assert again["Idempotent-Replayed"] == "true"
    assert again["Location"] == "/x"
    assert again.headers.get("Content-Encoding", "") == encoding
    assert encoding or again.content == body
