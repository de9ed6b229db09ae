"""Who may do what: what is forbidden is neither shown nor possible by address."""

import pytest
from django.urls import reverse

from idempotency.models import Event
from tests.integration.admin.conftest import Login
from tests.support.factories import make_variety

FORBIDDEN_TO_SUPPORT = ("ask", "settle", "retry", "cancel", "rerun")


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", FORBIDDEN_TO_SUPPORT)
def test_support_may_not_act_by_address(login: Login, method: str, name: str) -> None:
    key = make_variety()["person"]
    client = login("support")
    for address in (
        reverse("admin:idempotency_key_act", args=(key.pk, name)),
        reverse("admin:idempotency_key_bulk", args=(name,)),
        reverse("admin:idempotency_operation_bulk", args=(name,)),
    ):
        assert getattr(client, method)(address).status_code == 403
    assert not Event.objects.filter(kind__startswith="staff-").exists()


@pytest.mark.parametrize("name", ["settle", "rerun"])
def test_what_wants_a_look_at_each_is_not_done_to_many(login: Login, name: str) -> None:
    address = reverse("admin:idempotency_key_bulk", args=(name,))
    assert login("superuser").get(address).status_code == 403


def test_support_may_not_reveal_export_or_force(login: Login) -> None:
    key = make_variety()["person"]
    client = login("support")
    assert client.post(reverse("admin:idempotency_key_reveal", args=(key.pk,))).status_code == 403
    assert client.get(reverse("admin:idempotency_key_export")).status_code == 403
    assert client.get(reverse("admin:idempotency_breaker", args=("any",))).status_code == 403


def test_support_is_shown_no_button(login: Login) -> None:
    key = make_variety()["person"]
    client = login("support")
    page = client.get(reverse("admin:idempotency_key_change", args=(key.pk,))).content.decode()
    assert "Settle by hand</a>" not in page
    assert "Show the values" not in page
    assert "Export" not in client.get(reverse("admin:idempotency_key_changelist")).content.decode()


def test_operations_may_act_and_not_force_a_breaker(login: Login) -> None:
    key = make_variety()["person"]
    client = login("operations")
    page = client.get(reverse("admin:idempotency_key_change", args=(key.pk,))).content.decode()
    assert "Ask the gateway now" in page
    assert "Settle by hand" in page
    assert client.get(reverse("admin:idempotency_breaker", args=("any",))).status_code == 403


def test_engineers_may_force_a_breaker(login: Login) -> None:
    assert (
        login("engineers").get(reverse("admin:idempotency_breaker", args=("none",))).status_code
        == 404
    )


@pytest.mark.parametrize("model", ["key", "operation", "event", "heartbeat"])
def test_nobody_adds_changes_or_deletes_a_row(login: Login, model: str) -> None:
    key = make_variety()["completed"]
    client = login("superuser")
    assert client.get(reverse(f"admin:idempotency_{model}_add")).status_code == 403
    delete = reverse(f"admin:idempotency_{model}_delete", args=(key.pk,))
    assert client.post(delete, {"post": "yes"}).status_code in (302, 403)
    key.refresh_from_db()


def test_a_key_is_not_changed_by_a_post_to_its_page(login: Login) -> None:
    key = make_variety()["completed"]
    address = reverse("admin:idempotency_key_change", args=(key.pk,))
    assert login("superuser").post(address, {"state": "released"}).status_code == 403


def test_who_has_no_permission_sees_nothing(login: Login) -> None:
    key = make_variety()["completed"]
    client = login("nobody")
    for address in (
        reverse("admin:idempotency_heartbeat_changelist"),
        reverse("admin:idempotency_key_changelist"),
        reverse("admin:idempotency_key_change", args=(key.pk,)),
        reverse("admin:idempotency_event_changelist"),
    ):
        assert client.get(address).status_code == 403
