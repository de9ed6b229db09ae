"""A caller of the test host."""

import json
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from tests.support import host


class Caller:
    """Sends requests as one user; every call makes a new client, as a client that lost its connection would."""

    def __init__(self, user: User | None) -> None:
        self.user = user

    def post(
        self,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        method: str = "post",
        **more: Any,
    ) -> Any:
        client = APIClient(raise_request_exception=False)
        if self.user is not None:
            client.force_authenticate(self.user)
        if key is not None:
            more["HTTP_IDEMPOTENCY_KEY"] = key
        content = body if isinstance(body, str | bytes) else json.dumps(body or {})
        more.setdefault("content_type", "application/json")
        return getattr(client, method)(path, content, **more)


@pytest.fixture(autouse=True)
def _host(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.support.host"
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "TENANT": None}
    host.other_side.reset()
    host.ChargeResolver.told.clear()


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("alice")


@pytest.fixture
def caller(user: User) -> Caller:
    return Caller(user)


@pytest.fixture
def key() -> str:
    return str(uuid.uuid4())
