"""Callers of the deferring host, with workers that the test drives by hand."""

import json
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from rest_framework.test import APIClient

from idempotency.models import Key, Operation
from idempotency.operations import registry, runner, wake
from tests.support.deferring import jobs
from tests.support.host import other_side


class Caller:
    """Sends requests as one user."""

    def __init__(self, user: User) -> None:
        self.user = user

    def request(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: Any
    ) -> Any:
        client = APIClient(raise_request_exception=False)
        client.force_authenticate(self.user)
        if key is not None:
            headers["HTTP_IDEMPOTENCY_KEY"] = key
        content = json.dumps({} if body is None else body)
        return getattr(client, method)(path, content, content_type="application/json", **headers)

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return self.request("post", path, body, **more)

    def look(self, operation_id: object, **headers: Any) -> Any:
        client = APIClient(raise_request_exception=False)
        client.force_authenticate(self.user)
        return client.get(f"/api/operations/{operation_id}/", **headers)

    def job(self, given: Any = 1, *, path: str = "/jobs/", **more: Any) -> str:
        """Promise work; return the operation's id."""
        name = "test." + path.strip("/").removesuffix("s").replace("two-step", "two-steps")
        key = more.pop("key", None) or uuid.uuid4().hex
        answer = self.post(path, {"operation": name, "input": given, **more}, key=key)
        assert answer.status_code == 202, answer.content
        return str(answer.json()["id"])


@pytest.fixture(autouse=True)
def nudges(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Keep the nudges instead of publishing them."""
    settings.ROOT_URLCONF = "tests.support.deferring"
    settings.IDEMPOTENCY = {**settings.IDEMPOTENCY, "TENANT": None}
    jobs.reset()
    other_side.reset()
    kept: list[tuple[str, ...]] = []
    publisher = wake.Publisher(kept.append)
    monkeypatch.setattr(publisher, "put", kept.append)
    monkeypatch.setattr(wake, "_publisher", lambda: publisher)
    # What other apps have registered is none of these tests' business.
    own = tuple(each for each in registry.definitions() if each.name.startswith("test."))
    monkeypatch.setattr(runner, "definitions", lambda: own)
    return kept


@pytest.fixture
def caller(db: None) -> Caller:
    return Caller(User.objects.create_user("alice"))


@pytest.fixture
def stranger(db: None) -> Caller:
    return Caller(User.objects.create_user("bob"))


def key_of(operation_id: str) -> Key:
    return Key.objects.get(work__id=operation_id)


def work_of(operation_id: str) -> Operation:
    return Operation.objects.get(id=operation_id)


def make_due(operation_id: str | None = None) -> None:
    """Let the time of what waits come, by moving it in the row."""
    rows = Key.objects.filter(due_at__isnull=False)
    if operation_id is not None:
        rows = rows.filter(work__id=operation_id)
    with connection.cursor() as cursor:
        for key in rows:
            cursor.execute(
                "UPDATE idempotency_key SET due_at = clock_timestamp() - interval '1 second' WHERE id = %s",
                [key.id],
            )


def let_lapse(operation_id: str) -> None:
    """Let a lease run out, by moving it in the row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET lease_until = clock_timestamp() - interval '1 second' "
            "WHERE id = (SELECT key_id FROM idempotency_operation WHERE id = %s) AND lease_until IS NOT NULL",
            [operation_id],
        )


def let_look_up() -> None:
    """Let the next look-up be due, and every ended send be settled."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_key SET next_lookup_at = clock_timestamp() WHERE next_lookup_at IS NOT NULL"
        )
        cursor.execute(
            "UPDATE idempotency_sender SET ended_at = ended_at - interval '1 hour', "
            "send_before = send_before - interval '1 hour', dead_at = dead_at - interval '1 hour'"
        )
