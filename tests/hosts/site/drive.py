"""Use the ledger in this process as a host would, and assert what must hold whatever the settings are.

python -m tests.hosts.site.drive
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from django.core.management import call_command
from django.db import connections


def main() -> None:
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("check", fail_level="WARNING")
    alice, bob = members()
    replay(alice)
    tenants(alice, bob)
    race(alice)
    charge(alice)
    defer(alice)
    console(alice)


def members() -> tuple[Any, Any]:
    """Two tenants, a member of each."""
    from tests.hosts.site.models import Member, Tenant

    return tuple(  # type: ignore[return-value]
        Member.objects.create_superuser(
            name, password="secret", tenant=Tenant._default_manager.create()
        )
        for name in ("alice", "bob")
    )


def post(member: Any, path: str, key: str) -> Any:
    from rest_framework.test import APIClient

    client = APIClient(raise_request_exception=False)
    client.force_authenticate(member)
    return client.post(path, {}, format="json", headers={"Idempotency-Key": key})


def replay(member: Any) -> None:
    first, again = (post(member, "/local/", "k1") for _ in range(2))
    assert first.status_code == again.status_code == 201, (first.content, again.content)
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"


def tenants(one: Any, other: Any) -> None:
    """R5: another tenant's key is another key; a scope holds the UUIDs of tenant and user."""
    from idempotency.models import Key

    assert "Idempotent-Replayed" not in post(other, "/local/", "k1")
    scopes = set(Key.objects.using("default").values_list("scope", flat=True))
    assert scopes == {f"36:{member.tenant_id}/user:{member.pk}" for member in (one, other)}


def race(member: Any) -> None:
    """R8."""
    barrier = threading.Barrier(6)

    def send(_: int) -> Any:
        try:
            barrier.wait(30)
            return post(member, "/charge/", "race")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({a.content for a in answers if a.status_code == 201}) == 1


def charge(member: Any) -> None:
    from tests.support.host import other_side

    other_side.reset()
    first, again = (post(member, "/charge/", "charge") for _ in range(2))
    assert first.status_code == 201, first.content
    assert again.content == first.content
    assert len(other_side.effects) == 1


def defer(member: Any) -> None:
    promised = post(member, "/letters/", "letter")
    assert promised.status_code == 202, promised.content
    call_command("idempotency_wake", run=True, verbosity=0)
    defer_done(member, promised)
    assert post(member, "/letters/", "letter").content == promised.content


def defer_done(member: Any, promised: Any) -> None:
    """Ask the status monitor."""
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(member)
    assert client.get(promised["Location"]).json()["result"] == {"sent": "bob"}


def console(member: Any) -> None:
    from django.test import Client

    from idempotency.models import Event, Key

    assert post(member, "/local/?other", "k1").status_code == 422  # and there is an event to show
    browser = Client()
    browser.force_login(member)
    page = browser.get("/admin/idempotency/key/?q=charge")
    assert page.status_code == 200
    assert b"site.charge" in page.content
    key = Key.objects.using("default").get(key="charge")
    event = Event.objects.using("default").latest("pk")
    for path in (
        *("heartbeat/", "key/?state=all", "operation/", "event/", "key/export/"),
        *(f"key/{key.pk}/change/", f"event/{event.pk}/change/"),
    ):
        assert browser.get(f"/admin/idempotency/{path}").status_code == 200, path


if __name__ == "__main__":
    main()
    print("all is well")
