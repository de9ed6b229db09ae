"""Lists are cut into pages, and a size that cannot be is told, not ignored."""

import pytest

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
