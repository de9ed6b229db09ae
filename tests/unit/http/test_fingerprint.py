"""The fingerprint (R7): its parts, its digest under a named secret, and what of two requests differs."""

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from idempotency.exceptions import LedgerUnavailable
from idempotency.http.fingerprint import PARTS, Fingerprint, Incomparable
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
