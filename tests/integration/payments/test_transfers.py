"""`POST /api/transfers/`: one commit, money neither made nor lost."""

from payments.models import Account, Transfer
from tests.integration.payments.conftest import Shop


def accounts(shop: Shop) -> list[Account]:
    return list(Account.objects.filter(merchant=shop.merchant).order_by("name"))


def body(shop: Shop, **changes: object) -> dict[str, object]:
    main, savings = accounts(shop)
    return {"from_account": str(main.pk), "to_account": str(savings.pk), "amount": 400} | changes


def balances(shop: Shop) -> list[int]:
    return [account.balance for account in accounts(shop)]


def test_a_transfer_moves_money_once_and_is_replayed(shop: Shop) -> None:
    first = shop.post("/api/transfers/", body(shop), key="t1")
    second = shop.post("/api/transfers/", body(shop), key="t1")

    assert first.status_code == 201
    assert second.content == first.content
    assert balances(shop) == [9_600, 10_400]
    assert shop.client.get(first["Location"]).json() == first.json()
    assert [made["id"] for made in shop.client.get("/api/transfers/").json()["results"]] == [
        first.json()["id"]
    ]


def test_too_little_money_is_a_verdict_and_is_replayed(shop: Shop) -> None:
    first = shop.post("/api/transfers/", body(shop, amount=10_001), key="t1")
    Account.objects.update(balance=20_000)
    second = shop.post("/api/transfers/", body(shop, amount=10_001), key="t1")

    assert (first.status_code, first.json()["code"]) == (409, "insufficient-funds")
    assert second.content == first.content
    assert balances(shop) == [20_000, 20_000]
    assert not Transfer.objects.exists()


def test_a_wrong_account_leaves_the_key_free(shop: Shop, rival: Shop) -> None:
    theirs = accounts(rival)[0]
    refused = shop.post("/api/transfers/", body(shop, to_account=str(theirs.pk)), key="t1")
    assert refused.status_code == 400
    assert list(refused.json()["errors"]) == ["to_account"]

    assert shop.post("/api/transfers/", body(shop), key="t1").status_code == 201


def test_accounts_of_two_currencies_do_not_exchange(shop: Shop) -> None:
    Account.objects.filter(merchant=shop.merchant, name="savings").update(currency="EUR")
    refused = shop.post("/api/transfers/", body(shop))

    assert refused.status_code == 400
    assert balances(shop) == [10_000, 10_000]
