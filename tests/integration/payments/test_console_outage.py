"""Staff act while the database goes away: a page that says so, nothing half done, and the way on."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from idempotency.models import Event, Key
from idempotency.types import OpenStep
from payments.gateway.fake import Act, FakeGateway
from tests.integration.payments.conftest import Shop
from tests.support.outage import Outage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_broker")]
AWAY = b"The database cannot be reached"


@pytest.fixture
def outage() -> Iterator[Outage]:
    outage = Outage()
    yield outage
    outage.end()
    connection.close()


@pytest.fixture
def staff() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def unknown(shop: Shop, fake: FakeGateway) -> Key:
    fake.next(Act.LOSE_ANSWER)
    shop.pay(key="k1")
    return Key.objects.get(state="unknown")


@pytest.fixture
def waiting(shop: Shop, fake: FakeGateway) -> Key:
    shop.post("/api/payouts/", {"amount": 5, "currency": "UAH", "destination": "acct_1"}, key="k2")
    return Key.objects.get(key="k2")


def form_at(staff: Client, address: str) -> dict[str, str]:
    found = re.search(r'name="form" value="([^"]+)"', staff.get(address).content.decode())
    assert found
    seen = {"happened": "yes", "reference": "pi_1", "seen_where": "their dashboard"}
    return {"form": found[1], "reason": "ticket 17", **seen}


@pytest.mark.parametrize("name", ["ask", "settle", "retry", "cancel"])
def test_nothing_is_done_where_it_is_lost_between_page_and_button(
    staff: Client, unknown: Key, waiting: Key, outage: Outage, name: str
) -> None:
    key = unknown if name in ("ask", "settle") else waiting
    # What no look-up has been answered of is not settled by hand.
    Key.objects.update(lookups=1)
    address = reverse("admin:idempotency_key_act", args=(key.pk, name))
    form = form_at(staff, address)
    before = list(Key.objects.order_by("pk").values())
    outage.begin()
    answer = staff.post(address, form)
    assert (answer.status_code, AWAY in answer.content) == (503, True)
    outage.end()
    connection.close()
    assert list(Key.objects.order_by("pk").values()) == before
    assert not Event.objects.filter(kind__startswith="staff").exists()
    # The same form is good still.
    assert staff.post(address, form).status_code == 303
    assert Event.objects.filter(kind=f"staff-{name}").count() == 1


@pytest.mark.parametrize("long", [False, True])
def test_what_is_lost_while_the_gateway_is_asked_is_asked_again(
    staff: Client,
    unknown: Key,
    outage: Outage,
    fake: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
    long: bool,
) -> None:
    look_up = fake.look_up_charge

    def and_lose(step: OpenStep) -> Any:
        found = look_up(step)
        outage.begin()
        if not long:
            outage.end()
        return found

    address = reverse("admin:idempotency_key_act", args=(unknown.pk, "ask"))
    form = form_at(staff, address)
    with monkeypatch.context() as during:
        during.setattr(fake, "look_up_charge", and_lose)
        answer = staff.post(address, form, follow=True)
    said = AWAY if long else b"The database was lost in the middle."
    assert (answer.status_code, said in answer.content) == (503 if long else 200, True)
    outage.end()
    connection.close()
    unknown.refresh_from_db()
    assert unknown.state == "unknown"
    assert "had been sent before" in staff.post(address, form, follow=True).content.decode()
    assert staff.post(address, form_at(staff, address)).status_code == 303
    unknown.refresh_from_db()
    assert (unknown.state, unknown.settled_by, len(fake.effects)) == ("completed", "root", 1)


def test_every_page_says_that_the_database_is_away(staff: Client, outage: Outage) -> None:
    outage.begin()
    for name in ("index", "login", "idempotency_key_changelist", "payments_payment_changelist"):
        answer = staff.get(reverse(f"admin:{name}"))
        assert (answer.status_code, AWAY in answer.content) == (503, True)


@pytest.mark.parametrize("name", ["act/cancel", "values"])
def test_a_database_that_takes_no_writes_is_said_to_be_one(
    staff: Client, waiting: Key, name: str
) -> None:
    address = reverse("admin:idempotency_key_change", args=(waiting.pk,))
    acting = address.replace("change/", f"{name}/")
    form = form_at(staff, reverse("admin:idempotency_key_act", args=(waiting.pk, "cancel")))
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        assert staff.get(address).status_code == 200
        answer = staff.post(acting, form)
        assert (answer.status_code, b"or takes no writes" in answer.content) == (503, True)
    finally:
        connection.close()
    waiting.refresh_from_db()
    assert waiting.state == "in_progress"
