"""Middleware of any order, and routes of any shape, around decorated views."""

import gzip
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import translation

from idempotency.models import Key

Post = Callable[..., Any]
pytestmark = pytest.mark.django_db

AROUND = (
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.locale.LocaleMiddleware",
)
NEEDED = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)


def plain(response: Any) -> bytes:
    zipped = response.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(response.content) if zipped else response.content


@pytest.mark.parametrize("order", list(itertools.permutations(AROUND)))
@pytest.mark.parametrize("outside", [True, False])
def test_r16_middleware_in_any_order_leaves_a_replay_as_it_was(
    rest: Post, settings: Any, order: tuple[str, ...], outside: bool
) -> None:
    settings.MIDDLEWARE = [*order, *NEEDED] if outside else [*NEEDED, *order]
    accept = {"Accept-Encoding": "gzip", "Accept-Language": "de"}
    first = rest("/greeting/", headers=accept)
    # The second caller speaks another language and reads no gzip: what was answered is answered.
    again = rest("/greeting/", headers={"Accept-Language": "fr"})
    translation.deactivate()
    assert first.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in again.headers
    assert plain(again) == plain(first)
    assert b"Ja" in plain(first)
    assert again["Content-Language"] == first["Content-Language"]


def test_r1_csrf_comes_before_the_key(rest: Post, settings: Any) -> None:
    settings.MIDDLEWARE = [*NEEDED, "django.middleware.csrf.CsrfViewMiddleware"]
    settings.ROOT_URLCONF = "tests.hosts.plainviews"
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get())
    headers = {"Idempotency-Key": "k1"}
    body: Any = {"content_type": "application/json", "headers": headers}
    assert client.post("/order/", {}, **body).status_code == 403
    assert not Group.objects.exists()


def test_r6_nested_routes_are_one_operation_and_other_resources(rest: Post) -> None:
    first, again = (rest("/shops/1/orders/") for _ in range(2))
    assert again.content == first.content
    assert rest("/shops/2/orders/").status_code == 422
    assert rest("/shops/2/orders/", key="k2").status_code == 201
    assert rest("/shops/1/orders/7/pay/").status_code == 201


def test_r6_a_decorated_method_that_calls_another_is_one_claim(rest: Post) -> None:
    made, again = (rest("/subgroups/", {"name": "a"}) for _ in range(2))
    assert (made.status_code, again.content) == (201, made.content)
    assert list(Key.objects.values_list("operation", flat=True)) == ["rest.subgroups.create"]

    refused, again = (rest("/subgroups/", {"name": "refused"}, key="k2") for _ in range(2))
    assert (refused.status_code, again.content) == (402, refused.content)
    # What the inner method had written is undone with the outer.
    assert list(Group.objects.values_list("name", flat=True)) == ["a"]


def test_r6_drfs_partial_update_is_one_claim(rest: Post) -> None:
    group = Group.objects.create(name="a")
    changed, again = (rest(f"/groups/{group.pk}/", {"name": "b"}, method="patch") for _ in range(2))
    assert (changed.status_code, again.content) == (200, changed.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert Key.objects.get().operation == "rest.groups.partial-update"
    # The two methods are two operations: one key is good for each.
    assert rest(f"/groups/{group.pk}/", {"name": "c"}, method="put").status_code == 200
    assert Group.objects.get().name == "c"


@pytest.mark.django_db(transaction=True)
def test_r16_a_view_that_locks_its_object_is_replayed(rest: Post) -> None:
    """Who may still see an answer is asked of the view, whose lock needs a transaction."""
    group = Group.objects.create(name="one")
    first, again = (rest(f"/locking/{group.pk}/mark/") for _ in range(2))
    assert first.json() == {"name": "one marked"}
    assert (again.status_code, again.content) == (200, first.content)
    group.refresh_from_db()
    assert group.name == "one marked"
