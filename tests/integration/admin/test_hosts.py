"""Other people's projects: a site of their own, transactions around every request, another base class."""

import types
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import override_settings
from django.urls import include, path, reverse

from idempotency.admin import register
from idempotency.admin.base import base_admin
from idempotency.conf import conf
from idempotency.types import State
from tests.integration.admin.conftest import Login
from tests.support.factories import make_event, make_key, make_step, make_variety

site = admin.AdminSite(name="desk")
register(site)
urls = types.ModuleType("urls_of_another_host")
urls.urlpatterns = [path("desk/", site.urls), path("", include("idempotency.urls"))]  # type: ignore[attr-defined]


@override_settings(ROOT_URLCONF=urls)
def test_a_site_of_the_host_s_own_keeps_its_links_to_itself(login: Login) -> None:
    key = make_variety()["person"]
    make_event(key, alarming=True)
    client = login("engineers")
    for address in (
        "/desk/idempotency/heartbeat/",
        "/desk/idempotency/key/",
        f"/desk/idempotency/key/{key.pk}/change/",
        f"/desk/idempotency/key/{key.pk}/act/settle/",
        "/desk/idempotency/key/many/ask/?state=open",
        "/desk/idempotency/operation/?state=all",
        "/desk/idempotency/event/",
    ):
        page = client.get(address)
        assert page.status_code == 200, address
        assert '"/admin/' not in page.content.decode(), address
        assert "/desk/idempotency/" in page.content.decode()


@pytest.fixture
def _transactions_around_requests() -> Iterator[None]:
    before = connection.settings_dict["ATOMIC_REQUESTS"]
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    yield
    connection.settings_dict["ATOMIC_REQUESTS"] = before


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_transactions_around_requests")
def test_actions_work_where_every_request_is_a_transaction(login: Login) -> None:
    key = make_key(state=State.UNKNOWN, operation="nobody.resolves")
    make_step(key)
    client = login("operations")
    form = {"form": str(uuid.uuid4()), "reason": "Ticket 17 of today."}
    address = reverse("admin:idempotency_key_act", args=(key.pk, "ask"))
    assert client.post(address, form, follow=True).status_code == 200
    assert client.post(reverse("admin:idempotency_key_reveal", args=(key.pk,))).status_code == 200
    assert client.get(reverse("admin:idempotency_key_export")).status_code == 200
    many = reverse("admin:idempotency_key_bulk", args=("ask",))
    assert client.post(many, form | {"form": str(uuid.uuid4())}, follow=True).status_code == 200


def test_the_base_class_is_the_host_s_choice(settings: Any) -> None:
    assert base_admin() is admin.ModelAdmin
    settings.IDEMPOTENCY = {"ADMIN_BASE": "django.contrib.auth.admin.UserAdmin"}
    assert base_admin() is UserAdmin


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_registering_is_yes_or_no(settings: Any, value: object) -> None:
    settings.IDEMPOTENCY = {"ADMIN_REGISTER": value}
    with pytest.raises(ImproperlyConfigured, match="True or False"):
        _ = conf.ADMIN_REGISTER
