"""Events are appended to and never changed, whoever tries."""

import uuid

import pytest
from django.db import DatabaseError, connection, transaction
from django.urls import reverse

from idempotency.admin import audit
from idempotency.models import Event
from idempotency.types import State
from tests.integration.admin.conftest import Login
from tests.support.factories import make_event, make_key

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE idempotency_event SET actor = 'somebody else'",
        "DELETE FROM idempotency_event",
        "TRUNCATE idempotency_event",
    ],
)
def test_the_database_refuses(statement: str) -> None:
    make_event(make_key())
    with connection.cursor() as cursor:
        # The tests' database lets itself be emptied; anybody else's does not.
        cursor.execute("ALTER TABLE idempotency_event ENABLE TRIGGER idempotency_event_no_truncate")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute(statement)
    assert Event.objects.get().actor == "ops"


def test_a_superuser_can_neither_edit_nor_delete_an_event(login: Login) -> None:
    event = make_event(make_key())
    client = login("superuser")
    client.post(reverse("admin:idempotency_event_change", args=(event.pk,)), {"actor": "x"})
    assert (
        client.post(
            reverse("admin:idempotency_event_delete", args=(event.pk,)), {"post": "yes"}
        ).status_code
        == 403
    )
    assert Event.objects.get().actor == "ops"


def test_a_form_acts_once() -> None:
    form = uuid.uuid4()
    assert audit.begin(form=form, kind="staff-ask", actor="a")
    assert not audit.begin(form=form, kind="staff-ask", actor="a")
    assert Event.objects.count() == 1


def test_looking_at_values_is_recorded_before_they_are_shown(login: Login) -> None:
    key = make_key(state=State.COMPLETED)
    client = login("operations")
    page = client.post(reverse("admin:idempotency_key_reveal", args=(key.pk,)))
    assert "Olena Koval" in page.content.decode()
    assert page.headers["Cache-Control"].startswith("max-age=0")
    event = Event.objects.get(key_id=key.pk)
    assert (event.kind, event.actor) == ("staff-reveal", "operations")


def test_values_are_not_shown_by_following_a_link(login: Login) -> None:
    key = make_key(state=State.COMPLETED)
    response = login("operations").get(reverse("admin:idempotency_key_reveal", args=(key.pk,)))
    assert response.status_code == 303
    assert not Event.objects.exists()


def test_an_event_s_own_address_shows_nothing_more(login: Login) -> None:
    event = make_event(make_key(), detail={"record": {"name": "Olena Koval"}})
    response = login("support").get(
        reverse("admin:idempotency_event_change", args=(event.pk,)), follow=True
    )
    assert "Olena Koval" not in response.content.decode()


@pytest.mark.parametrize(("method", "name"), [("get", "export/"), ("post", "many/ask/")])
def test_a_card_number_that_somebody_searched_for_is_not_put_on_record(
    login: Login, method: str, name: str
) -> None:
    card = "4242 4242 4242 4242"
    make_key(state=State.UNKNOWN, reference=card)
    address = reverse("admin:idempotency_key_changelist") + name
    form = {"form": str(uuid.uuid4()), "reason": "ticket 17"}
    data = {"data": form} if method == "post" else {}
    getattr(login("operations"), method)(address, query_params={"q": card}, **data)
    recorded = [event.detail["list"] for event in Event.objects.all() if "list" in event.detail]
    assert recorded == ["q=**** **** **** 4242"]
