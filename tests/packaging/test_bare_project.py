"""Installed into a project of somebody else's: it works there, and it leaves nothing when it goes.

The tests are one story, told in the order in which they stand.
"""

import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import requests

from tests.packaging.bareproject import Bare

pytestmark = pytest.mark.slow

LOGIN = ("alice", "a-password")
DOORS = (
    "decorators",
    "operations",
    "ledger",
    "resilience",
    "exceptions",
    "types",
    "client",
    "urls",
    "views",
    "checks",
    "http.problem",
)
EXTRAS = {
    "celery": "import idempotency.tasks",
    "openapi": "import idempotency.openapi",
    "http": "from idempotency.resilience import http_client",
    "redis": "from idempotency.resilience import SharedStore; SharedStore.connect('redis://localhost')",
}
PASSWORD = (
    "from django.contrib.auth import get_user_model; "
    f"get_user_model().objects.create_superuser('{LOGIN[0]}', password='{LOGIN[1]}')"
)


def post(address: str, path: str, key: str) -> requests.Response:
    return requests.post(
        address + path, json={}, auth=LOGIN, headers={"Idempotency-Key": key}, timeout=30
    )


def tables(database: dict[str, Any]) -> set[str]:
    with psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        user=database["USER"],
        password=database["PASSWORD"],
        dbname=database["NAME"],
    ) as connection:
        objects = connection.execute(
            "SELECT relname FROM pg_class WHERE relname LIKE 'idempotency%' "
            "UNION SELECT proname FROM pg_proc WHERE proname LIKE 'idempotency%'"
        )
        return {str(name) for (name,) in objects.fetchall()}


def test_every_door_opens_without_the_extras(bare: Bare) -> None:
    bare.add_the_ledger()
    imports = "; ".join(f"import idempotency.{door}" for door in DOORS)
    bare.manage("shell", "-v", "0", "-c", imports)


def test_a_missing_extra_is_named_where_it_is_needed(bare: Bare) -> None:
    program = "\n".join(
        f"try:\n    {uses}\nexcept ImportError as error:\n    print(error)"
        for uses in EXTRAS.values()
    )
    told = bare.manage("shell", "-v", "0", "-c", program)
    assert re.findall(r"install the extra `(\w+)`", told) == list(EXTRAS)


def test_sqlite_is_refused_with_the_reason(bare: Bare) -> None:
    told = bare.manage("check", fails=True)
    assert "idempotency.E011" in told
    assert "advisory locks" in told


def test_it_migrates_and_its_checks_are_content(bare: Bare) -> None:
    bare.use_postgres()
    bare.manage("migrate", "-v", "0")
    bare.manage("shell", "-v", "0", "-c", PASSWORD)
    bare.manage("makemigrations", "--check", "--dry-run", "idempotency")
    assert "no issues" in bare.manage("check", "--fail-level", "WARNING")


SECOND = 'DATABASES["second"] = {**DATABASES["default"], "NAME": DATABASES["default"]["NAME"] + "_second"}'


@pytest.mark.parametrize("side_by_side", [(), ("--parallel", "2")])
@pytest.mark.parametrize("more", ["", SECOND], ids=["one database", "two"])
def test_their_own_suite_empties_its_tables(
    bare: Bare, more: str, side_by_side: tuple[str, ...]
) -> None:
    assert "OK" in bare.manage(
        "test", "shop", "--settings", bare.settings_with(more), *side_by_side
    )


def test_their_suite_without_migrations_is_told_why_it_cannot(bare: Bare) -> None:
    without = bare.settings_with('MIGRATION_MODULES = {"idempotency": None}')
    told = bare.manage("test", "shop", "--settings", without, fails=True)
    assert "made without migrations" in told


def test_replay_race_and_console_over_real_http(bare: Bare) -> None:
    key = uuid.uuid4().hex
    with bare.server() as address:
        first, again = (post(address, "/orders/", key) for _ in range(2))
        with ThreadPoolExecutor(8) as pool:
            twins = list(pool.map(lambda _: post(address, "/orders/", "race"), range(8)))
        page = console(address)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"
    assert {twin.status_code for twin in twins} <= {201, 409}
    assert len({twin.content for twin in twins if twin.status_code == 201}) == 1
    assert "shop.order" in page


def console(address: str) -> str:
    """Log in to the admin and return the list of keys."""
    browser = requests.Session()
    form = browser.get(f"{address}/admin/login/", timeout=30).text
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token is not None
    page = browser.post(
        f"{address}/admin/login/",
        {
            "username": LOGIN[0],
            "password": LOGIN[1],
            "csrfmiddlewaretoken": token[1],
            "next": "/admin/idempotency/key/?q=race",
        },
        timeout=30,
    )
    page.raise_for_status()
    return page.text


def test_deferred_work_is_done_without_celery(bare: Bare) -> None:
    with bare.server() as address:
        promised = post(address, "/letters/", "letter")
        assert promised.status_code == 202
        assert "1 run" in bare.manage("idempotency_wake", "--run")
        status = requests.get(address + promised.headers["Location"], auth=LOGIN, timeout=30).json()
    assert status["done"] is True
    assert status["result"] == {"sent": "alice"}


def test_it_is_removed_without_a_trace(bare: Bare, database: dict[str, object]) -> None:
    assert tables(database)
    bare.manage("migrate", "-v", "0", "idempotency", "zero")
    bare.remove_the_ledger()
    bare.pip("uninstall", "drf-idempotency-ledger")
    assert tables(database) == set()
    assert "no issues" in bare.manage("check")
    bare.run("-c", "import idempotency", fails=True)
