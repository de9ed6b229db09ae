"""The demo merchants on the real database, the fake gateway at the port, and a client for each."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from idempotency.models import Key
from idempotency.reconciliation import reconcile
from payments.gateway import using
from payments.gateway.fake import FakeGateway
from payments.models import Account, ApiUser, Merchant


@pytest.fixture
def fake() -> Iterator[FakeGateway]:
    # What it does not know a moment later, it never will.
    gateway = FakeGateway(settling_time=0)
    with using(gateway):
        yield gateway


def settle_unknown() -> None:
    """Reconcile every key that is unknown, as the beat would."""
    for key in Key.objects.filter(state="unknown"):
        reconcile(key_id=key.id)


@dataclass
class Shop:
    """A merchant as a caller of the API."""

    merchant: Merchant
    client: APIClient
    token: str

    def post(self, path: str, body: object, *, key: str | None = "") -> Any:
        """POST JSON under a key: a new one where none is given, none where it is None."""
        headers = {} if key is None else {"Idempotency-Key": key or str(uuid.uuid4())}
        return self.client.post(path, body, format="json", headers=headers)

    def pay(self, *, key: str = "", **changes: Any) -> Any:
        body = {"order_id": "881", "amount": 1200, "currency": "UAH", "source": "pm_card_visa"}
        return self.post("/api/payments/", body | changes, key=key)

    def another(self) -> "Shop":
        """Return the same caller on another connection, for a thread of its own."""
        return Shop(self.merchant, _client(self.token), self.token)


def _client(token: str) -> APIClient:
    return APIClient(headers={"Authorization": f"Token {token}"}, raise_request_exception=False)


def make_shop(name: str) -> Shop:
    merchant = Merchant.objects.create(name=name, slug=name)
    user = User.objects.create_user(name)
    ApiUser.objects.create(user=user, merchant=merchant)
    Token.objects.create(user=user, key=f"token-{name}")
    for account in ("main", "savings"):
        Account.objects.create(merchant=merchant, name=account, currency="UAH", balance=10_000)
    return Shop(merchant, _client(f"token-{name}"), f"token-{name}")


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return make_shop("shop")


@pytest.fixture
def rival(transactional_db: None) -> Shop:
    return make_shop("rival")


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nudge nobody: the tests run the work themselves."""
    monkeypatch.setattr("idempotency.operations.wake.nudge", lambda **_: None)
