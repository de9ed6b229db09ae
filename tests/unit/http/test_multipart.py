"""Multipart bodies in a fingerprint (R7, C4): their parts count, their boundary does not."""

import tracemalloc
from typing import Any

import pytest
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from idempotency.exceptions import Misuse
from idempotency.http.fingerprint import Fingerprint
from idempotency.http.problem import BodyInvalid, BodyTooLarge, BodyUnreadable
from tests.unit.http.requests import fingerprint_of, request_of

CRLF = b"\r\n"
Part = tuple[bytes, bytes | None, bytes, bytes]
"""Name, filename, content type, content."""

TEXT: Part = (b"text", None, b"", b"hello")
FILE: Part = (b"doc", b"a.txt", b"text/plain", b"content")


def body_of(*parts: Part, boundary: bytes = b"xxBOUNDARYxx") -> bytes:
    lines = []
    for name, filename, content_type, content in parts:
        disposition = b'Content-Disposition: form-data; name="' + name + b'"'
        if filename is not None:
            disposition += b'; filename="' + filename + b'"'
        lines += [b"--" + boundary, disposition]
        if content_type:
            lines.append(b"Content-Type: " + content_type)
        lines += [b"", content]
    return CRLF.join([*lines, b"--" + boundary + b"--", b""])


def upload(body: bytes, *, boundary: str = "xxBOUNDARYxx", **extra: Any) -> Request:
    return request_of(body, f"multipart/form-data; boundary={boundary}", **extra)


def data_of(request: Request) -> Any:
    return request.data


def print_of(*parts: Part) -> Fingerprint:
    return fingerprint_of(upload(body_of(*parts)))


names = st.text("abc", min_size=1, max_size=2).map(str.encode)
contents = st.text(max_size=20).filter(lambda t: "\ufffd" not in t).map(lambda t: t.encode())
part_lists = st.lists(
    st.tuples(names, st.none(), st.just(b""), contents)
    | st.tuples(
        names, names, st.sampled_from([b"text/plain", b"image/png"]), st.binary(max_size=20)
    ),
    min_size=1,
    max_size=4,
)


@given(part_lists, st.text("abcXYZ0123456789", min_size=20, max_size=40))
def test_the_boundary_does_not_matter(parts: list[Part], boundary: str) -> None:
    """C4: a client draws a fresh one on each try."""
    other = upload(body_of(*parts, boundary=boundary.encode()), boundary=boundary)
    assert fingerprint_of(other) == print_of(*parts)


@given(part_lists, part_lists)
def test_two_uploads_are_equal_if_and_only_if_each_name_has_the_same_parts_in_order(
    one: list[Part], other: list[Part]
) -> None:
    """C4, C10: parts of different names may change places, which no view can see."""

    def by_name(parts: list[Part]) -> dict[tuple[bytes, bool], list[Part]]:
        found: dict[tuple[bytes, bool], list[Part]] = {}
        for part in parts:
            found.setdefault((part[0], part[1] is None), []).append(part)
        return found

    assert (print_of(*one) == print_of(*other)) == (by_name(one) == by_name(other))


@pytest.mark.parametrize(
    "other",
    [
        (b"doc2", b"a.txt", b"text/plain", b"content"),
        (b"doc", b"b.txt", b"text/plain", b"content"),
        (b"doc", b"a.txt", b"text/html", b"content"),
        (b"doc", b"a.txt", b"text/plain; charset=latin-1", b"content"),
        (b"doc", b"a.txt", b"text/plain; x=1", b"content"),
        (b"doc", b"a.txt", b"text/plain", b"contenT"),
        (b"doc", b"a.txt", b"text/plain", b""),
        (b"doc", None, b"", b"content"),
    ],
)
def test_a_file_is_its_name_filename_type_and_content(other: Part) -> None:
    """C4."""
    assert print_of(TEXT, FILE).differing(print_of(TEXT, other).parts()) == ["body"]


def test_a_value_counts_as_sent_and_a_missing_part_is_not_an_empty_one() -> None:
    """R7, C14."""
    plain = print_of(TEXT, FILE)
    assert print_of((b"text", None, b"", b" hello "), FILE) != plain
    assert print_of((b"text", None, b"", b""), FILE) != print_of(FILE)


def test_the_view_finds_its_fields_and_files_at_their_start() -> None:
    """C4: DRF's own parser raises once the stream is gone."""
    request = upload(body_of(TEXT, FILE))
    first = fingerprint_of(request)
    assert data_of(request)["text"] == "hello"
    assert data_of(request)["doc"].read() == b"content"
    assert request.FILES["doc"].name == "a.txt"
    assert fingerprint_of(request) == first
    assert data_of(request)["doc"].read() == b"content"


def test_a_body_that_was_parsed_before_has_the_same_fingerprint() -> None:
    """C4: by the view's permission, or by Django's check of a form's CSRF token."""
    by_drf, by_django = upload(body_of(TEXT, FILE)), upload(body_of(TEXT, FILE))
    data_of(by_drf)["doc"].read(3)
    assert by_django._request.POST["text"] == "hello"
    assert fingerprint_of(by_drf) == fingerprint_of(by_django) == print_of(TEXT, FILE)


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_uploads_with_another_method_are_read_as_well(method: str) -> None:
    request = upload(body_of(TEXT, FILE), method=method)
    assert fingerprint_of(request).differing(print_of(TEXT, FILE).parts()) == ["method"]


def test_a_large_file_is_never_in_memory_as_a_whole() -> None:
    """C4: 30 MB."""
    size = 30 * 2**20
    request = upload(body_of(TEXT, (b"doc", b"a.bin", b"application/octet-stream", b"x" * size)))
    request._request.upload_handlers = [TemporaryFileUploadHandler(request._request)]
    tracemalloc.start()
    try:
        fingerprint_of(request)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 8
    assert data_of(request)["doc"].size == size
    request._request.close()


@pytest.mark.parametrize(
    "body",
    [
        body_of(FILE, boundary=b"another"),
        b"nonsense",
        body_of(boundary=b"xxANOTHERxxx"),
        body_of()[2:],
        # The end of the last part is missing: Django would leave the file out.
        body_of(TEXT, FILE).rpartition(b"\r\n--")[0],
        body_of((b"text", None, b"", b"\xff")),
        body_of((b"\xff", None, b"", b"x")),
        body_of((b"doc", b"\xff.txt", b"text/plain", b"x")),
    ],
)
def test_a_body_that_django_would_read_as_something_else_is_refused(body: bytes) -> None:
    """R7: never hashed as empty, nor as less than was sent."""
    with pytest.raises(BodyInvalid):
        fingerprint_of(upload(body))


@pytest.mark.parametrize("end", [CRLF, b""])
def test_a_form_without_parts_is_a_form(end: bytes) -> None:
    """DRF's test client and browsers send it; one that differs in a part is another."""
    empty = body_of().removesuffix(CRLF) + end
    request, parsed_before = upload(empty), upload(empty)
    assert parsed_before._request.POST == {}  # by Django's check of a form's CSRF token
    assert fingerprint_of(request) == fingerprint_of(parsed_before) != print_of(TEXT)
    assert not data_of(request)


def test_a_body_whose_parsing_failed_before_is_not_taken_as_empty() -> None:
    """R7."""
    request = upload(b"nonsense", boundary="")
    for _ in range(2):
        with pytest.raises(BodyInvalid):
            fingerprint_of(request)


def test_a_body_cut_short_is_refused() -> None:
    """R7: Django's parser takes what came for the whole."""
    body = body_of(TEXT, FILE)
    for sent in range(len(body)):
        with pytest.raises(BodyUnreadable):
            fingerprint_of(upload(body[:sent], CONTENT_LENGTH=str(len(body))))


def test_djangos_limits_hold(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_NUMBER_FILES = 1
    with pytest.raises(BodyTooLarge):
        fingerprint_of(upload(body_of(FILE, FILE)))
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    with pytest.raises(BodyTooLarge):
        fingerprint_of(upload(body_of((b"text", None, b"", b"x" * 20))))


def test_a_view_without_a_multipart_parser_refuses_as_ever() -> None:
    http = upload(body_of(TEXT))._request
    with pytest.raises(UnsupportedMediaType):
        fingerprint_of(Request(http, parsers=[JSONParser()]))


def test_a_parser_of_another_shape_is_a_mistake_in_the_project() -> None:
    request = upload(body_of(TEXT))
    vars(request).update(_data={"text": "hello"}, _full_data={"text": "hello"}, _files={})
    with pytest.raises(Misuse, match="QueryDict"):
        fingerprint_of(request)


def test_a_plain_django_request_has_the_same_fingerprint() -> None:
    http = RequestFactory().post(
        "/", body_of(TEXT, FILE), "multipart/form-data; boundary=xxBOUNDARYxx"
    )
    assert fingerprint_of(http) == print_of(TEXT, FILE)  # type: ignore[arg-type]
