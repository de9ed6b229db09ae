"""The kit for a host's own suite does what it says, in both of Django's kinds of test case, and can fail."""

import re
import unittest
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.http import HttpResponse
from django.test import TestCase, TransactionTestCase, override_settings
from rest_framework.response import Response
from rest_framework.test import APIClient
from rest_framework.views import APIView

from idempotency import faultpoints, reconciliation
from idempotency.http import response as http_response
from idempotency.models import Key
from idempotency.testing import (
    AnswerLost,
    LosingClient,
    RepeatingClient,
    assert_replayed,
    interrupt_at,
    pass_time,
    together,
)
from idempotency.types import Answer
from tests.support.host import other_side

HOST = override_settings(ROOT_URLCONF="tests.support.host", IDEMPOTENCY={})
LOCAL, CHARGE = "/local/", "/charge/"


class Works(unittest.TestCase):
    """What works in both; a test case of Django's is mixed in."""

    def setUp(self) -> None:
        super().setUp()
        other_side.reset()
        self.user = User.objects.create_user("alice")

    def client_of(self, kind: type[APIClient], **options: Any) -> Any:
        client = kind(raise_request_exception=False, **options)
        client.force_authenticate(self.user)
        return client

    def test_every_post_is_sent_twice(self) -> None:
        client = self.client_of(RepeatingClient)
        first = client.post(LOCAL, {"name": "a"}, format="json")
        assert first.status_code == 201
        assert_replayed(first, client.repeat)
        assert Group.objects.filter(name="a").count() == 1
        assert Key.objects.count() == 1

    def test_a_key_of_the_tests_own_is_kept(self) -> None:
        client = self.client_of(RepeatingClient)
        client.post(LOCAL, {"name": "a"}, format="json", headers={"Idempotency-Key": "k1"})
        client.post(LOCAL, {"name": "b"}, format="json", HTTP_IDEMPOTENCY_KEY="k2")
        assert set(Key.objects.values_list("key", flat=True)) == {"k1", "k2"}

    def test_what_is_refused_is_refused_twice(self) -> None:
        client = self.client_of(RepeatingClient)
        answer = client.post(LOCAL, {"name": "a", "kind": "invalid"}, format="json")
        assert (answer.status_code, client.repeat.status_code) == (400, 400)

    def test_a_function_and_an_action_are_sent_twice_too(self) -> None:
        client = self.client_of(RepeatingClient)
        for path in ("/function/", "/things/1/touch/"):
            client.post(path, {"name": path}, format="json")
            assert client.repeat.status_code == 201

    def test_other_requests_are_sent_once(self) -> None:
        client = self.client_of(RepeatingClient)
        for path, send in ((LOCAL, client.get), ("/nowhere/", client.post)):
            send(path)
            assert client.repeat is None

    def test_an_answer_is_lost_and_the_repeat_gets_it(self) -> None:
        client = self.client_of(LosingClient)

        def post() -> Any:
            headers = {"Idempotency-Key": "k1"}
            return client.post(CHARGE, {"name": "a"}, format="json", headers=headers)

        with pytest.raises(AnswerLost) as lost:
            post()
        assert_replayed(lost.value.response, post())
        assert len(other_side.effects) == 1

    def test_time_passes(self) -> None:
        client = self.client_of(APIClient)

        def post() -> Any:
            headers = {"Idempotency-Key": "k1"}
            return client.post(LOCAL, {"name": "a"}, format="json", headers=headers)

        post()
        pass_time(259_000)
        assert post().status_code == 201
        pass_time(300)
        assert post().json()["code"] == "result-expired"

    def test_a_request_is_interrupted_where_it_is_told(self) -> None:
        """After the call nothing is known; nobody charges again, and the reconciler finds it."""
        client = self.client_of(APIClient)

        def post(**more: str) -> Any:
            headers = {"Idempotency-Key": "k1", **more}
            return client.post(CHARGE, {"name": "a"}, format="json", headers=headers)

        with interrupt_at("after_call") as headers:
            post(**headers)
        assert post().json()["code"] == "outcome-unknown"
        pass_time(60)
        assert [report.decision for report in reconciliation.run()] == ["applied"]
        assert post().status_code == 201
        assert len(other_side.effects) == 1

    def test_an_interruption_that_did_not_come_fails_the_test(self) -> None:
        client = self.client_of(APIClient)
        with pytest.raises(AssertionError), interrupt_at("after_call"):
            client.post(CHARGE, {"name": "a"}, format="json", HTTP_IDEMPOTENCY_KEY="k1")
        with pytest.raises(ValueError), interrupt_at("nowhere"):
            pass


@HOST
class TestInTestCase(Works, TestCase):
    """Every test in one transaction that is rolled back."""


@HOST
class TestInTransactionTestCase(Works, TransactionTestCase):
    """Every test commits, and all tables are emptied after it."""

    def test_callers_at_one_moment(self) -> None:
        def post(_: int) -> Any:
            client = self.client_of(APIClient)
            headers = {"Idempotency-Key": "k1"}
            return client.post(CHARGE, {"name": "a"}, format="json", headers=headers).status_code

        assert 201 in together(5, post)
        assert len(other_side.effects) == 1


# `Works` alone has no database.
del Works


# -- it can fail -------------------------------------------------------------------------------------------------------


def answer(status: Any = 201, body: Any = b"{}", **headers: str) -> HttpResponse:
    made = HttpResponse(body, status=status, content_type="application/json")
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    return made


MARK = {"Idempotent_Replayed": "true", "Cache_Control": "no-store"}


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (answer(), "no replay"),
        (answer(200, **MARK), "status 200"),
        (answer(body=b"[]", **MARK), "body differs"),
        (answer(Location="/2/", **MARK), "Location"),
        (answer(**MARK, Set_Cookie="a=b"), "Set-Cookie"),
        (answer(Idempotent_Replayed="true"), "cache"),
    ],
)
def test_a_replay_that_is_none_is_told_apart(second: HttpResponse, said: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(said)):
        assert_replayed(answer(Set_Cookie="a=b"), second)


def test_a_replay_is_one() -> None:
    first = answer(Location="/1/", Set_Cookie="a=b")
    stored = Answer(201, b"{}", "application/json", {"Location": "/1/"})
    assert_replayed(first, http_response.thaw(answer=stored, replayed=True))


def test_a_handler_that_runs_twice_is_found_out(
    monkeypatch: pytest.MonkeyPatch, settings: Any, db: None
) -> None:
    """The decorator taken away, the kit says so."""

    class Broken(APIView):
        def post(self, request: Any, **_: object) -> Response:
            Group.objects.create(name=f"run {Group.objects.count()}")
            return Response({"runs": Group.objects.count()}, status=201)

    settings.ROOT_URLCONF = "tests.support.host"
    from tests.support.host import Local

    monkeypatch.setattr(Local, "dispatch", lambda _, request, **__: Broken.as_view()(request))
    client = RepeatingClient()
    client.force_authenticate(User.objects.create_user("alice"))
    with pytest.raises(AssertionError, match="no replay"):
        client.post(LOCAL, {"name": "a"}, format="json")


def test_the_fixtures_are_the_kit(
    repeating_client: RepeatingClient,
    losing_client: LosingClient,
    pass_time: Callable[[float], None],
    db: None,
) -> None:
    assert (type(repeating_client), losing_client.lose) == (RepeatingClient, 1)
    pass_time(1)


def test_every_time_of_the_ledger_is_moved_but_its_history(db: None) -> None:
    """A column added later is moved as well: none is named."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM information_schema.columns WHERE column_name = 'due_at' "
            "AND table_name = 'idempotency_key'"
        )
        assert cursor.fetchone() == (1,)
    key = Key.objects.create(
        scope="s", operation="o", key="k", fingerprint=b"0" * 32, state="in_progress",
        fingerprint_version=1, fingerprint_secret="s", claimed_at="2026-01-02T00:00Z",
        lease_until="2026-01-03T00:00Z", created_at="2026-01-02T00:00Z",
    )  # fmt: skip
    pass_time(86_400)
    key.refresh_from_db()
    assert (key.claimed_at.day, key.lease_until.day if key.lease_until else 0) == (1, 2)


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(faultpoints.VARIABLE, "after_call:kill")
    with pytest.raises(AssertionError), interrupt_at("before_commit"):
        pass
    import os

    assert os.environ[faultpoints.VARIABLE] == "after_call:kill"
