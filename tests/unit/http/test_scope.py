"""The scope of a key (R5): a tenant and a stable principal, so that no caller meets another's key."""

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.test import RequestFactory, override_settings
from django.utils.functional import SimpleLazyObject
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.request import Request

from idempotency.exceptions import Misuse
from idempotency.http.scope import MAX_LENGTH, scope_of


def request_of(user: Any, *, auth: object = None, tenant: object = None) -> Request:
    request = Request(RequestFactory().post("/"))
    request.user = user
    request.auth = auth
    vars(request).update(tenant=tenant)
    return request


def tenant_of(request: Any) -> object:
    return request.tenant


class Terminal:
    """A principal that is no row: e.g. from a signed token."""

    is_authenticated = True

    def __init__(self, pk: object) -> None:
        self.pk = pk


WITH_TENANT = override_settings(IDEMPOTENCY={"TENANT": tenant_of})


def test_the_principal_is_the_user_and_not_the_credential() -> None:
    """R5, B4: a refreshed token, or a session instead of a token, is the same caller."""
    user = User(pk=7)
    first = scope_of(request=request_of(user, auth="token-1"))
    assert first == "user:7"
    assert scope_of(request=request_of(User(pk=7), auth="token-2")) == first
    assert scope_of(request=request_of(SimpleLazyObject(lambda: user))) == first


@pytest.mark.parametrize("pk", [7, "seven", uuid.UUID(int=7)])
def test_any_kind_of_primary_key_will_do(pk: object) -> None:
    assert scope_of(request=request_of(Terminal(pk))).endswith(f":{pk}")


def test_principals_of_two_kinds_with_equal_keys_differ() -> None:
    """R5, B1."""
    group = Group(pk=7)
    group.is_authenticated = True  # type: ignore[attr-defined]
    callers = [User(pk=7), group, Terminal(7), User(pk=8)]
    assert len({scope_of(request=request_of(caller)) for caller in callers}) == len(callers)


@WITH_TENANT
def test_one_user_in_two_tenants_has_two_scopes_and_no_tenant_is_a_third() -> None:
    """R5, B1."""
    user = User(pk=7)
    tenants = ["a", "b", None, "None", ""]
    scopes = {scope_of(request=request_of(user, tenant=tenant)) for tenant in tenants}
    assert len(scopes) == len(tenants)
    assert scope_of(request=request_of(user, tenant=Group(pk=3))) == "1:3/user:7"
    assert scope_of(request=request_of(user, tenant=3)) == "1:3/user:7"


names = st.text(max_size=12) | st.text("0123456789:/user", max_size=12)


@WITH_TENANT
@given(st.tuples(st.none() | names, names), st.tuples(st.none() | names, names))
def test_no_two_pairs_of_tenant_and_principal_collide(
    one: tuple[str | None, str], other: tuple[str | None, str]
) -> None:
    """R5, B1, C10: whatever is in the names."""
    scopes = [
        scope_of(request=request_of(Terminal(pk), tenant=tenant)) for tenant, pk in (one, other)
    ]
    assert (scopes[0] == scopes[1]) == (one == other)


@pytest.mark.parametrize("user", [AnonymousUser(), None, User(), Terminal(None), SimpleNamespace()])
def test_an_anonymous_caller_is_refused_loudly(user: Any) -> None:
    """R5."""
    with pytest.raises(Misuse, match="scope callable"):
        scope_of(request=request_of(user))


def test_an_anonymous_caller_is_named_by_the_endpoint_or_the_host() -> None:
    """R5."""

    def by_address(request: Any) -> str:
        return f"ip:{request.META['REMOTE_ADDR']}"

    anonymous = request_of(AnonymousUser())
    assert scope_of(request=anonymous, scope=by_address) == "ip:127.0.0.1"
    with override_settings(IDEMPOTENCY={"SCOPE": by_address}):
        assert scope_of(request=anonymous) == "ip:127.0.0.1"


@pytest.mark.parametrize("value", ["", None, 7, b"x"])
def test_a_callable_that_names_nobody_is_refused_loudly(value: Any) -> None:
    with pytest.raises(Misuse, match="must return a string"):
        scope_of(request=request_of(User(pk=7)), scope=lambda request: value)


@given(
    st.lists(
        st.text(min_size=1, max_size=300).filter(bool) | st.just("x\x00y") | st.just("\ud800"),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_every_scope_fits_the_column_and_stays_apart_from_others(values: list[str]) -> None:
    """R5, B1: long and unprintable ones become digests, which nobody can name by hand."""
    scopes = [scope_named(value) for value in values]
    assert scopes[0] != scopes[1]
    for scope in scopes:
        assert 1 <= len(scope) <= MAX_LENGTH
        assert scope.isprintable()
        # Sent by hand, it is another scope than the digest it looks like.
        assert (scope_named(scope) == scope) == (not scope.startswith("~sha256:"))


def scope_named(value: str) -> str:
    def scope(request: Any) -> str:
        return value

    return scope_of(request=request_of(User(pk=7)), scope=scope)
