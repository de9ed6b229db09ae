"""Endpoints and deliveries in the console: shown without secrets, acted on once and on record."""

import html
import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from idempotency.models import Event, Key
from payments.models import Delivery
from tests.integration.completion.conftest import Hearing, Receiver, delivery, work
from tests.integration.payments.conftest import Shop


def login(*permissions: str, superuser: bool = False) -> Client:
    user = User.objects.create_user(
        f"user-{len(permissions)}-{superuser}", is_staff=True, is_superuser=superuser
    )
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def console(transactional_db: None) -> Client:
    return login(superuser=True)


def submit(console: Client, address: str) -> str:
    """Send the form that the page shows, twice, and return what the person is told."""
    page = console.get(address).content.decode()
    form = re.search(r'name="form" value="([0-9a-f-]+)"', page)
    assert form is not None, page
    body = {"form": form[1], "reason": "asked for by phone"}
    first, second = (console.post(address, body) for _ in range(2))
    assert first.status_code == second.status_code == 303
    return console.get(second["Location"]).content.decode()


def test_a_delivery_is_shown_with_its_tries_and_sent_again_once(
    console: Client, shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    shop.pay()
    work()
    address = reverse("admin:payments_delivery_change", args=[delivery().pk])
    page = console.get(address).content.decode()
    assert delivery().webhook_id in page
    assert "204" in page
    assert hearing.secret not in page
    assert "order_id" not in page, "what it says is the merchant's"
    assert console.get(reverse("admin:payments_delivery_changelist")).status_code == 200

    told = submit(console, reverse("admin:payments_delivery_act", args=[delivery().pk, "again"]))
    assert "had been sent before" in told
    work()
    assert len(receiver.arrived) == 2
    assert len(set(receiver.ids)) == 1
    [event] = Event.objects.filter(kind="staff-webhook")
    assert (event.reason, event.detail["asked"]) == ("asked for by phone", "Send again")
    events = console.get(reverse("admin:idempotency_event_changelist")).content.decode()
    assert "Somebody acted on the delivery of webhooks" in events
    assert f"about: {delivery()}" in html.unescape(events)


def test_an_endpoint_is_switched_off_and_on(console: Client, hearing: Hearing) -> None:
    page = console.get(reverse("admin:payments_endpoint_change", args=[hearing.id]))
    assert hearing.secret not in page.content.decode()
    off, on = (
        reverse("admin:payments_endpoint_act", args=[hearing.id, name]) for name in ("off", "on")
    )
    assert off in page.content.decode()
    submit(console, off)
    assert "nothing to do" in submit(console, off), "a form of somebody else's does not undo it"
    assert (hearing.row.status, hearing.row.disabled_because) == (
        "disabled",
        "switched off by staff",
    )
    submit(console, on)
    assert hearing.row.status == "enabled"


def test_who_only_looks_cannot_act(shop: Shop, hearing: Hearing) -> None:
    shop.pay()
    viewer = login("view_delivery", "view_endpoint", "view_deliveryattempt")
    page = viewer.get(reverse("admin:payments_delivery_change", args=[delivery().pk]))
    assert page.status_code == 200
    act = reverse("admin:payments_delivery_act", args=[delivery().pk, "again"])
    assert act not in page.content.decode()
    assert viewer.post(act, {"reason": "because I can"}).status_code == 403
    assert login("operate_payments").get(act).status_code == 403
    assert Delivery.objects.get().status == "waiting"


def test_a_delivery_is_found_by_what_the_receiver_knows(
    console: Client, shop: Shop, hearing: Hearing
) -> None:
    for order in ("881", "882"):
        shop.pay(order_id=order)
    wanted = Delivery.objects.latest("created_at")
    sought = [wanted.webhook_id, str(wanted.operation_id), wanted.webhook_id[:-1], "order 881"]
    found = []
    for text in sought:
        page = console.get(reverse("admin:payments_delivery_changelist"), {"q": text})
        found.append(re.findall(r"msg_[0-9a-f]{32}(?=<)", page.content.decode()))
    assert found == [[wanted.webhook_id], [wanted.webhook_id], [], []]


def test_a_delivery_leads_to_what_it_is_about(
    console: Client, shop: Shop, hearing: Hearing
) -> None:
    paid = shop.pay().json()["id"]
    ping = shop.client.post(f"{hearing.path}ping/").json()
    assert ping["about"] is None
    page = console.get(reverse("admin:payments_delivery_changelist")).content.decode()
    about = re.findall(r'field-about">(.*?)</td>', page)
    assert about == ["–", f'<a href="/admin/payments/payment/{paid}/change/">{paid[:8]}…</a>']


def test_its_page_tells_times_as_the_pages_of_keys_do(
    console: Client, shop: Shop, hearing: Hearing
) -> None:
    shop.pay()
    address = reverse("admin:payments_delivery_change", args=[delivery().pk])
    page = console.get(address).content.decode()
    assert delivery().created_at.strftime("%b %Y %H:%M:%S") in page
    assert "View on site" not in page


def test_a_token_in_an_address_is_shown_to_nobody_and_not_put_on_record(
    console: Client, shop: Shop, hearing: Hearing
) -> None:
    shop.client.patch(hearing.path, {"url": f"{hearing.row.url}?token=hush"}, format="json")
    shop.pay()
    work()
    end = delivery()
    for name, pk in (("endpoint", hearing.id), ("delivery", end.pk)):
        for address in (
            reverse(f"admin:payments_{name}_changelist"),
            reverse(f"admin:payments_{name}_change", args=[pk]),
            reverse(
                f"admin:payments_{name}_act", args=[pk, "off" if name == "endpoint" else "again"]
            ),
        ):
            page = console.get(address).content.decode()
            assert "/events?…" in page, address
            assert "hush" not in page, address
    submit(console, reverse("admin:payments_delivery_act", args=[end.pk, "again"]))
    assert "hush" not in str(Event.objects.get(kind="staff-webhook").detail)
    assert Key.objects.get(operation="webhooks.deliver", reference=end.webhook_id).summary == str(
        end
    )
