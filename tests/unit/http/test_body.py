"""Reading a body (R7): it is one thing that arrived whole, or a refusal; the view can still read it."""

import io
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.asgi import ASGIRequest
from django.http import UnreadablePostError
from django.test import RequestFactory
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from idempotency.exceptions import Misuse
from idempotency.http.fingerprint import fingerprint
from idempotency.http.problem import BodyInvalid, BodyTooLarge, BodyUnreadable, LengthRequired
from tests.unit.http.requests import fingerprint_of, request_of

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"a":1,"a":1}', "application/json"),
        (b"1e400", "application/json"),
        (b'"\\ud800"', "application/vnd.api+json"),
        (b"\xff", "application/json"),
        (b"  ", "application/json"),
        (b"[" * 5000, "application/json"),
        (b"{}", "application/json; charset=bz2_codec"),
    ],
)
def test_a_body_that_is_not_one_thing_is_refused(body: bytes, content_type: str) -> None:
    """R7, C6, C7, C9."""
    with pytest.raises(BodyInvalid) as caught:
        fingerprint_of(request_of(body, content_type))
    assert caught.value.status_code == 400
    assert caught.value.code == "body-invalid"


@pytest.mark.parametrize("content_type", ["application/json", FORM, "text/plain"])
@pytest.mark.parametrize("sent", [b"", b"1"])
def test_a_body_cut_short_is_refused_and_not_taken_as_what_came(
    content_type: str, sent: bytes
) -> None:
    """R7: never hashed as empty, nor as less than it was."""
    request = request_of(sent, content_type, CONTENT_LENGTH="3")
    with pytest.raises(BodyUnreadable):
        fingerprint_of(request)


def test_a_client_that_goes_while_sending_is_named() -> None:
    """R7."""

    class Gone(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            raise OSError("connection reset")

    extra: dict[str, Any] = {"wsgi.input": Gone()}
    request = request_of("{}", **extra)
    with pytest.raises(BodyUnreadable) as caught:
        fingerprint_of(request)
    assert isinstance(caught.value.__cause__, UnreadablePostError)


@pytest.mark.parametrize("plain", [True, False])
def test_nor_does_a_body_go_unseen_that_an_async_server_hands_on_without_a_length(
    plain: bool,
) -> None:
    """R7: a plain view would read it, so two of them must not be equal."""
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
    http = ASGIRequest(scope, io.BytesIO(b"a body"))
    request = http if plain else Request(http, parsers=[JSONParser()])
    with pytest.raises(LengthRequired):
        fingerprint(request=request, route="r", path_args={})
    empty = ASGIRequest(scope, io.BytesIO(b""))
    fingerprint(request=empty, route="r", path_args={})


def test_a_body_in_chunks_without_a_length_is_refused_since_drf_would_see_none() -> None:
    """R7: never hashed as empty."""
    http = RequestFactory().post("/", HTTP_TRANSFER_ENCODING="chunked")
    del http.META["CONTENT_LENGTH"]
    with pytest.raises(LengthRequired) as caught:
        fingerprint_of(Request(http))
    assert caught.value.status_code == 411


def test_djangos_limits_hold(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    with pytest.raises(BodyTooLarge) as caught:
        fingerprint_of(request_of('"0123456789"'))
    assert isinstance(caught.value.__cause__, RequestDataTooBig)
    with pytest.raises(BodyTooLarge):
        fingerprint_of(request_of("a&b&c", FORM))


def test_a_stream_that_somebody_drained_is_a_mistake_in_the_project() -> None:
    """R7: never hashed as empty."""
    request = request_of("{}")
    request.read()
    with pytest.raises(Misuse, match="read before"):
        fingerprint_of(request)


@pytest.mark.parametrize(
    ("body", "content_type"), [(b'{"a": [1]}', "application/json"), (b"a=1", FORM)]
)
def test_the_view_reads_the_body_before_or_after(body: bytes, content_type: str) -> None:
    after, before = request_of(body, content_type), request_of(body, content_type)
    first = fingerprint_of(after)
    assert after.data == before.data
    assert fingerprint_of(before) == fingerprint_of(after) == first
    assert after.body == body


def test_a_plain_django_request_has_the_same_fingerprint() -> None:
    http = RequestFactory().post("/", b"{}", "application/json")
    assert fingerprint(request=http, route="r", path_args={}) == fingerprint_of(request_of("{}"))
