"""A caller of the hosts that run in this process."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

Post = Callable[..., Any]


@pytest.fixture
def rest(settings: Any, db: None) -> Post:
    """Return how a request is sent to the host of DRF views: each by a client of its own."""
    settings.ROOT_URLCONF = "tests.hosts.restviews"
    settings.IDEMPOTENCY = {}
    user = User.objects.create_user("alice", password="secret")

    def send(path: str, data: Any = None, *, key: str | None = "k1", **more: Any) -> Any:
        client = APIClient(raise_request_exception=False)
        client.force_authenticate(user)
        headers = more.pop("headers", {}) | ({} if key is None else {"Idempotency-Key": key})
        more.setdefault("format", "json")
        send_by = getattr(client, more.pop("method", "post"))
        return send_by(path, data or {}, headers=headers, **more)

    return send
