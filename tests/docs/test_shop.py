"""The README's example, installed into a plain project as its four steps say, charges once."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings

from tests.docs.shop import Shop
from tests.support.stack import Stack

CLIENT = """
import json
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

token = Token.objects.get_or_create(user=User.objects.get_or_create(username="buyer")[0])[0]
client = APIClient()
client.credentials(HTTP_AUTHORIZATION=f"Token {token}")


def buy(key, amount=700):
    answer = client.post("/orders/", {"amount": amount}, headers={"Idempotency-Key": key})
    replayed = answer.headers.get("Idempotent-Replayed")
    print(json.dumps([answer.status_code, replayed, answer.content.decode()]))
"""


@pytest.fixture(scope="module")
def kept_stack(made_stack: Stack) -> Stack:
    made_stack.start("simulator")
    return made_stack


@pytest.fixture(scope="module")
def shop(kept_stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return the project of a reader who has done the four steps."""
    tests_own = kept_stack.environment["DATABASE_URL"]
    name = f"{settings.DATABASES['default']['NAME']}_shop"
    with psycopg.connect(tests_own, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}"')
        connection.execute(f'CREATE DATABASE "{name}"')
    shop = Shop(
        tmp_path_factory.mktemp("shop"),
        database_url=f"{tests_own.rpartition('/')[0]}/{name}",
        gateway_url=kept_stack.simulator_url,
    )
    shop.manage("makemigrations", "shop")
    shop.manage("migrate")
    yield shop
    with psycopg.connect(tests_own, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def said(printed: str) -> list[Any]:
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_readmes_example_charges_once(shop: Shop, shared_stack: Stack) -> None:
    shop.manage("check", "--fail-level", "WARNING")

    first, again = said(shop.python(f"{CLIENT}\nbuy('a')\nbuy('a')"))
    assert (first[0], again[0]) == (201, 201)
    assert (first[1], again[1]) == (None, "true")
    assert first[2] == again[2]
    assert len(shared_stack.effects()) == 1

    # Every answer is lost: nobody knows, and the same key is not run again.
    lost = {
        "path": "/v1/payment_intents",
        "kind": "reset_after",
        "times": 9,
        "match": {"method": "POST"},
    }
    shared_stack.simulate("POST", "/_sim/faults", lost)
    unknown, repeated = said(shop.python(f"{CLIENT}\nbuy('b', 800)\nbuy('b', 800)"))
    assert (unknown[0], json.loads(unknown[2])["code"]) == (504, "outcome-unknown")
    assert (repeated[0], json.loads(repeated[2])["code"]) == (409, "outcome-unknown")

    ref = json.loads(unknown[2])["operation_ref"]
    assert "completed" in shop.manage("idempotency_reconcile", "--key", ref)
    (found,) = said(shop.python(f"{CLIENT}\nbuy('b', 800)"))
    assert (found[0], found[1], json.loads(found[2])["status"]) == (201, "true", "paid")
    assert sorted(effect["amount"] for effect in shared_stack.effects()) == [700, 800]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_decline_in_the_readmes_example_is_kept(shop: Shop, shared_stack: Stack) -> None:
    gateway = shop.folder / "shop" / "gateway.py"
    written = gateway.read_text()
    gateway.write_text(written.replace("pm_card_visa", "pm_card_chargeDeclined"))
    try:
        first, again = said(shop.python(f"{CLIENT}\nbuy('c', 900)\nbuy('c', 900)"))
    finally:
        gateway.write_text(written)
    assert (first[0], json.loads(first[2])["code"]) == (402, "card-declined")
    assert (again[0], again[1]) == (402, "true")
    status = "from shop.models import Order\nprint(Order.objects.get(amount=900).status)"
    assert shop.python(status) == "failed\n"
    assert shared_stack.effects() == []


@pytest.mark.slow
def test_the_readmes_beat_entries_name_tasks_that_exist(shop: Shop) -> None:
    shop.python(
        "from shop_project.celery import app\n"
        "app.loader.import_default_modules()\n"
        "assert len(app.conf.beat_schedule) == 3\n"
        "for entry in app.conf.beat_schedule.values():\n"
        "    assert entry['task'] in app.tasks, entry\n"
    )


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_without_the_ledger_the_business_rows_stay(shop: Shop, shared_stack: Stack) -> None:
    """docs/upgrading.md: the tables go."""
    count = "from shop.models import Order\nprint(Order.objects.count())"
    before = shop.python(f"{CLIENT}\nbuy('d', 100)\n{count}").splitlines()[-1]
    shop.manage("migrate", "idempotency", "zero")
    assert shop.python(count) == f"{before}\n"
    assert int(before) > 0
