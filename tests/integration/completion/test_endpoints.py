"""Endpoints through the API: registered once, secrets shown once, nobody else's."""

from functools import partial

from cryptography.fernet import Fernet
from django.conf import LazySettings

from payments.completion.endpoints import keys_of
from payments.models import Endpoint, EndpointSecret
from tests.integration.completion.conftest import Hearing, Receiver, listen, work
from tests.integration.payments.conftest import Shop, make_shop
from tests.integration.payments.test_races import at_once

BASE = "/api/webhook-endpoints/"
URL = "http://127.0.0.1:9/events"


def test_an_address_is_registered_once_and_its_secret_shown_once(shop: Shop) -> None:
    first = shop.client.post(BASE, {"url": URL}, format="json")
    second = shop.client.post(BASE, {"url": URL}, format="json")
    assert (first.status_code, second.status_code) == (201, 200)
    assert "no-store" in first["Cache-Control"]
    made = first.json()
    assert made.pop("secret").startswith("whsec_")
    assert second.json() == made
    assert shop.client.get(f"{BASE}{made['id']}/").json() == made
    assert shop.client.get(BASE).json()["results"] == [made]


def test_two_registrations_at_once_make_one(shop: Shop) -> None:
    answers = at_once(
        [partial(shop.another().client.post, BASE, {"url": URL}, format="json") for _ in range(6)]
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert Endpoint.objects.count() == EndpointSecret.objects.count() == 1


def test_the_secret_is_sealed_in_the_database(shop: Shop, settings: LazySettings) -> None:
    settings.IDEMPOTENCY = settings.IDEMPOTENCY | {
        "ENCRYPTION_KEYS": [Fernet.generate_key().decode()]
    }
    hearing = listen(shop, URL)
    [stored] = EndpointSecret.objects.values_list("sealed", flat=True)
    assert hearing.secret.encode() not in bytes(stored)
    assert b"whsec_" not in bytes(stored)
    assert keys_of(hearing.row) == [hearing.secret]


def test_another_merchants_endpoint_is_not_there(shop: Shop) -> None:
    hearing, rival = listen(shop, URL), make_shop("other")
    assert rival.client.get(BASE).json()["results"] == []
    for method, path in (
        ("get", hearing.path),
        ("patch", hearing.path),
        ("delete", hearing.path),
        ("post", f"{hearing.path}secrets/"),
        ("post", f"{hearing.path}ping/"),
        ("get", f"{hearing.path}deliveries/"),
    ):
        assert getattr(rival.client, method)(path).status_code == 404, path
    assert listen(rival, URL).id != hearing.id, "the same address may be two merchants'"


def test_what_is_removed_is_told_of_nothing_more(
    shop: Shop, hearing: Hearing, receiver: Receiver
) -> None:
    shop.pay()
    assert shop.client.delete(hearing.path).status_code == 204
    assert shop.client.get(hearing.path).status_code == 404
    shop.pay()
    work()
    assert receiver.arrived == []
    again = listen(shop, hearing.row.url)
    assert (again.id, again.secret) != (hearing.id, hearing.secret)


def test_an_endpoint_is_changed_to_what_is_given(shop: Shop) -> None:
    hearing = listen(shop, URL)
    body = {"url": f"{URL}/new", "events": ["payment.declined"], "enabled": False}
    for _ in range(2):
        changed = shop.client.patch(hearing.path, body, format="json").json()
        assert {name: changed[name] for name in body} == body
        assert changed["disabled_because"] == "switched off"
    other = listen(shop, URL)
    taken = shop.client.patch(other.path, {"url": f"{URL}/new"}, format="json")
    assert (taken.status_code, list(taken.json()["errors"])) == (400, ["url"])


NO_ENDPOINT: list[dict[str, object]] = [
    {},
    {"url": ""},
    {"url": 5},
    {"url": "ftp://example.com"},
    {"url": "https://"},
    {"url": "https://user:password@example.com/"},
    {"url": "https://example.com/#part"},
    {"url": "https://example.com:0/"},
    {"url": "https://example.com:99999/"},
    {"url": "https://exa mple.com/"},
    {"url": "https://example.com/\r\nX: y"},
    {"url": "https://example.com\\@127.0.0.1/"},
    {"url": "https://exämple.com/"},
    {"url": "http://0177.0.0.1/"},
    {"url": "https://jpbQ1{0Z8NfX"},
    {"url": "https://example.com/100%"},
    {"url": "https://-/"},
    {"url": "https://example.com/" + "a" * 500},
    {"url": URL, "events": ["payment.nothing"]},
    {"url": URL, "events": "payment.declined"},
    {"url": URL, "secret": "mine"},
]


def test_what_cannot_be_an_endpoint_is_refused(shop: Shop) -> None:
    for body in NO_ENDPOINT:
        assert shop.client.post(BASE, body, format="json").status_code == 400, body
    assert not Endpoint.objects.exists()


def test_a_merchant_has_so_many_endpoints_at_most(shop: Shop) -> None:
    for number in range(10):
        listen(shop, f"{URL}/{number}")
    assert shop.client.post(BASE, {"url": URL}, format="json").status_code == 400
