"""Hosts that open transactions themselves: ATOMIC_REQUESTS, and a TestCase around every test."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections
from django.test import TestCase, override_settings
from rest_framework.test import APIClient

from idempotency.models import Key
from idempotency.testing import interrupt_at
from idempotency.types import State
from tests.support.host import other_side

Post = Callable[..., Any]


@pytest.fixture
def _atomic_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    for alias in connections:
        monkeypatch.setitem(connections[alias].settings_dict, "ATOMIC_REQUESTS", True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_atomic_requests")
class TestUnderAtomicRequests:
    def test_r13_without_the_line_that_opts_out_it_fails_loudly(self, rest: Post) -> None:
        assert rest("/atomic/").status_code == 500
        assert not Group.objects.exists()
        assert not Key.objects.exists()

    @pytest.mark.parametrize(
        "path", ["/opted-out/", "/opted-out/function/", "/shops/", "/shops/1/pay/"]
    )
    def test_r13_with_it_every_kind_of_view_works(self, rest: Post, path: str) -> None:
        first, again = (rest(path) for _ in range(2))
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.content == first.content
        assert Group.objects.count() == 1

    def test_r14_a_verdict_survives_the_rollback_that_drfs_handler_asks_for(
        self, rest: Post
    ) -> None:
        first, again = (rest("/opted-out/", {"kind": "verdict"}) for _ in range(2))
        assert (first.status_code, again.status_code) == (402, 402)
        assert Key.objects.get().state == State.COMPLETED
        assert not Group.objects.exists()


@override_settings(ROOT_URLCONF="tests.hosts.restviews", IDEMPOTENCY={})
class InATestCase(TestCase):
    """A host's own test: Django keeps a transaction open around it."""

    def test_r13_a_replay_in_a_hosts_test_case(self) -> None:
        client = APIClient()
        client.force_authenticate(User.objects.create_user("alice"))
        first, again = (
            client.post("/shops/", {}, format="json", headers={"Idempotency-Key": "k1"})
            for _ in range(2)
        )
        assert first.status_code == 201
        assert again.content == first.content
        assert Group.objects.count() == 1

    def test_each_test_begins_with_an_empty_ledger(self) -> None:
        assert not Key.objects.exists()


@override_settings(ROOT_URLCONF="tests.hosts.plainviews", IDEMPOTENCY={})
class InterruptedInATestCase(TestCase):
    def test_an_interruption_between_two_phases_leaves_the_test_its_rows(self) -> None:
        self.client.force_login(User.objects.create_user("alice"))
        other_side.reset()
        with interrupt_at("after_phase1") as headers:
            self.charge(headers)
        assert Key.objects.get().state == State.RELEASED
        assert self.charge().status_code == 201
        assert len(other_side.effects) == 1

    def charge(self, headers: Mapping[str, str] = MappingProxyType({})) -> Any:
        return self.client.post("/charge/", {}, headers={"Idempotency-Key": "k1", **headers})
