"""Lists are cut into pages and to one order, and what cannot be asked for is told, not ignored."""

import pytest

from payments.gateway.fake import FakeGateway
from tests.integration.payments.conftest import Shop


@pytest.mark.parametrize("size", ["0", "-1", "201", "null", "1.0", "", "١", "9" * 400])
def test_a_size_that_cannot_be_is_refused(shop: Shop, size: str) -> None:
    answer = shop.client.get("/api/payments/", {"page_size": size})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert "page_size" in answer.json()["errors"]


def test_a_page_has_the_size_that_is_wanted(shop: Shop) -> None:
    answer = shop.client.get("/api/accounts/", {"page_size": "1"})
    assert len(answer.json()["results"]) == 1
    assert answer.json()["next"]
    assert shop.client.get("/api/accounts/?page_size=1&page_size=2").status_code == 400
    assert len(shop.client.get("/api/accounts/").json()["results"]) == 2


def test_the_payments_of_one_order_are_found(shop: Shop, rival: Shop, fake: FakeGateway) -> None:
    wanted = [shop.pay(order_id="881").json()["id"] for _ in range(2)]
    shop.pay(order_id="882")
    rival.pay(order_id="881")
    found = shop.client.get("/api/payments/", {"order_id": "881"}).json()["results"]
    assert [each["id"] for each in found] == wanted[::-1]
    assert shop.client.get("/api/payments/", {"order_id": "88"}).json()["results"] == []


@pytest.mark.parametrize("query", ["order_id=", "order_id=a%00b", "order_id=1&order_id=2"])
def test_an_order_that_cannot_be_is_refused(shop: Shop, query: str) -> None:
    answer = shop.client.get(f"/api/payments/?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["order_id"])
