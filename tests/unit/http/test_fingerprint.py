"""The fingerprint (R7): its parts, its digest under a named secret, and what of two requests differs."""

import io
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from django.test import RequestFactory, override_settings
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.request import Request

from idempotency.exceptions import LedgerUnavailable, Misuse
from idempotency.http.fingerprint import PARTS, Fingerprint, Incomparable, fingerprint
from idempotency.http.problem import BodyInvalid, BodyTooLarge, BodyUnreadable, LengthRequired
from tests.unit.http.requests import fingerprint_of, request_of

FORM = "application/x-www-form-urlencoded"


def differing(one: Fingerprint, other: Fingerprint) -> list[str]:
    """Say what differs; the digests must differ exactly where a part does."""
    names = one.differing(other.parts())
    version, secret, digest = other.current
    assert one.matches(version=version, secret_name=secret, digest=digest) == (not names)
    return names


def test_each_part_is_named_when_it_is_the_one_that_differs() -> None:
    """R7, R9, C2."""
    plain = fingerprint_of(request_of("{}", path="/?a=1"))
    assert differing(plain, fingerprint_of(request_of("{ }", path="/?a=1"))) == []
    others = {
        "method": fingerprint_of(request_of("{}", path="/?a=1", method="PATCH")),
        "route": fingerprint_of(request_of("{}", path="/?a=1"), route="s"),
        "path arguments": fingerprint_of(request_of("{}", path="/?a=1"), path_args={"pk": 1}),
        "query": fingerprint_of(request_of("{}", path="/?a=2")),
        "media type": fingerprint_of(
            request_of("{}", "application/merge-patch+json", path="/?a=1")
        ),
        "body": fingerprint_of(request_of("[]", path="/?a=1")),
        "headers": fingerprint_of(request_of("{}", path="/?a=1"), headers=["X-Currency"]),
    }
    assert tuple(others) == PARTS
    for name, other in others.items():
        assert differing(plain, other) == [name]


def test_one_key_for_two_payments_refunds_is_a_reuse() -> None:
    """R6: the concrete path arguments belong to the fingerprint."""
    one, other = (
        fingerprint_of(request_of("{}"), route="payments/<int:pk>/refunds/", path_args={"pk": pk})
        for pk in (1, 2)
    )
    assert differing(one, other) == ["path arguments"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/?a=1&b=2", "/?b=2&a=1", True),
        ("/?a=%7e", "/?a=~", True),
        ("/?a=+", "/?a=%20", True),
        ("/", "/?", True),
        ("/?a=1", "/?a=1&a=1", False),
        # A view that reads `a` gets the last one.
        ("/?a=1&a=2", "/?a=2&a=1", False),
        ("/?a=", "/", False),
        ("/?a=b%26c", "/?a=b&c", False),
        ("/?a=%ff", "/?a=%fe", False),
        ("/?a=%EF%BF%BD", "/?a=%ff", False),
    ],
)
def test_the_query_is_its_pairs_sorted_by_name(one: str, other: str, same: bool) -> None:
    """R7."""
    prints = [fingerprint_of(request_of("{}", path=path)) for path in (one, other)]
    assert (differing(*prints) == []) == same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("application/json", "Application/JSON; charset=UTF-8", True),
        ("application/json", "application/json;charset=latin-1", True),
        ("application/json", "application/json; v=2", False),
        ("application/json", "text/json", False),
        ("text/plain", "text/plain; charset=utf-8", True),
        ("text/plain", "text/plain; charset=latin-1", False),
        (FORM, FORM + "; charset=latin-1", False),
    ],
)
def test_the_media_type_counts_and_its_spelling_does_not(one: str, other: str, same: bool) -> None:
    """R7."""
    prints = [fingerprint_of(request_of("{}", content_type)) for content_type in (one, other)]
    assert ("media type" not in differing(*prints)) == same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b"a=1&b=2", b"a=%31&b=2", True),
        (b"a=+", b"a=%20", True),
        (b"a=1&b=2", b"b=2&a=1", False),
        (b"a=1&a=2", b"a=2&a=1", False),
        (b"a=hello", b"a=+hello+", False),
        (b"a=", b"b=", False),
        (b"a=\xff", b"a=\xfe", False),
        (b"a=1%26b=2", b"a=1&b=2", False),
    ],
)
def test_a_form_is_its_ordered_pairs(one: bytes, other: bytes, same: bool) -> None:
    """R7."""
    prints = [fingerprint_of(request_of(body, FORM)) for body in (one, other)]
    assert (differing(*prints) == []) == same


def test_any_other_body_is_its_bytes() -> None:
    """R7."""
    prints = [
        fingerprint_of(request_of(body, "application/xml", HTTP_CONTENT_DISPOSITION="x"))
        for body in (b"<a/>", b"<a />")
    ]
    assert differing(*prints) == ["body"]


def test_no_body_is_not_an_empty_object_nor_null() -> None:
    """R7, C14."""
    nothing, obj, null = (fingerprint_of(request_of(body)) for body in ("", "{}", "null"))
    assert differing(nothing, obj) == differing(nothing, null) == ["body"]


def test_bodies_of_two_kinds_are_never_equal() -> None:
    """C10: what one media type means is not what another one's bytes happen to be."""
    prints = [
        fingerprint_of(request_of(body, content_type))
        for body, content_type in (
            ("[1]", "application/json"),
            ("[1]", "text/plain"),
            ("[1]", FORM),
        )
    ]
    assert len({print_.contents[PARTS.index("body")] for print_ in prints}) == 3


def test_headers_count_only_where_the_host_says_so_and_absent_is_not_empty() -> None:
    """R7."""

    def of(headers: list[str], **extra: str) -> Fingerprint:
        return fingerprint_of(request_of("{}", **extra), headers=headers)

    assert differing(of([], HTTP_X_CURRENCY="EUR"), of([])) == []
    named = ["x-currency"]
    assert (
        differing(of(named, HTTP_X_CURRENCY="EUR"), of(["X-Currency"], HTTP_X_CURRENCY="EUR")) == []
    )
    assert differing(of(named, HTTP_X_CURRENCY="EUR"), of(named)) == ["headers"]
    assert differing(of(named, HTTP_X_CURRENCY=""), of(named)) == ["headers"]
    with override_settings(IDEMPOTENCY={"FINGERPRINT_HEADERS": named}):
        assert differing(of([], HTTP_X_CURRENCY="EUR"), of([])) == ["headers"]


contents = st.tuples(*[st.binary(max_size=6)] * len(PARTS))


@given(contents, contents)
def test_no_two_lists_of_parts_have_one_digest(
    one: tuple[bytes, ...], other: tuple[bytes, ...]
) -> None:
    """R7, C10: path `/a` with body `b|c` is not path `/a|b` with body `c`."""
    assert (Fingerprint(one).digest() == Fingerprint(other).digest()) == (one == other)


arguments = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3)


@given(arguments, arguments)
def test_no_two_sets_of_path_arguments_or_queries_are_run_together(
    one: dict[str, str], other: dict[str, str]
) -> None:
    """C10."""
    prints = [fingerprint_of(request_of(), path_args=args) for args in (one, other)]
    assert (prints[0] == prints[1]) == (one == other)


def test_an_old_row_is_compared_under_its_own_secret_and_a_rotation_loses_nothing() -> None:
    """R7: a rotated secret never turns a live retry into a mismatch."""
    print_ = fingerprint_of(request_of("{}"))
    with override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"2024": "a"}}):
        version, name, digest = print_.current
        parts = print_.parts()
    assert (version, name, len(digest)) == (1, "2024", 32)
    with override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"2025": "b", "2024": "a"}}):
        assert print_.current[1] == "2025"
        assert print_.current[2] != digest
        assert print_.matches(version=version, secret_name=name, digest=digest)
        assert print_.differing(parts, secret_name=name, version=version) == []
        assert not print_.matches(version=version, secret_name="2025", digest=digest)


@override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"2025": "b"}})
@pytest.mark.parametrize(("version", "name"), [(1, "2024"), (2, "2025"), (0, "2025")])
def test_a_row_that_cannot_be_compared_is_neither_equal_nor_different(
    version: int, name: str
) -> None:
    """R7, R9: nothing runs, and nobody is told that the key was reused."""
    print_ = fingerprint_of(request_of("{}"))
    with pytest.raises(Incomparable):
        print_.matches(version=version, secret_name=name, digest=b"")
    with pytest.raises(Incomparable):
        print_.differing(b"", version=version, secret_name=name)
    assert issubclass(Incomparable, LedgerUnavailable)


def test_the_parts_tell_nothing_without_the_secret() -> None:
    print_ = fingerprint_of(request_of("{}"))
    with override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"1": "a"}}):
        one = print_.parts()
    with override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"1": "b"}}):
        assert print_.parts() != one
    assert len(one) == 4 * len(PARTS)


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
