"""The README's example, installed into a plain project as its four steps say, charges once."""

import json
from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture
def stack(live_stack: Stack) -> Stack:
    live_stack.start("simulator")
    return live_stack


@pytest.fixture
def shop(stack: Stack, stack_database_url: str, tmp_path: Path) -> Iterator[Shop]:
    name = f"{settings.DATABASES['default']['NAME']}_shop"
    with psycopg.connect(stack_database_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}"')
        connection.execute(f'CREATE DATABASE "{name}"')
    shop = Shop(
        tmp_path / "shop",
        database_url=f"{stack_database_url.rpartition('/')[0]}/{name}",
        gateway_url=stack.simulator_url,
    )
    yield shop
    with psycopg.connect(stack_database_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def said(printed: str) -> list[Any]:
    return [json.loads(line) for line in printed.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_readmes_example_charges_once(shop: Shop, stack: Stack) -> None:
    shop.manage("makemigrations", "shop")
    shop.manage("migrate")
    shop.manage("check", "--fail-level", "WARNING")

    first, again = said(shop.python(f"{CLIENT}\nbuy('a')\nbuy('a')"))
    assert (first[0], again[0]) == (201, 201)
    assert (first[1], again[1]) == (None, "true")
    assert first[2] == again[2]
    assert len(stack.effects()) == 1

    # Every answer is lost: nobody knows, and the same key is not run again.
    lost = {
        "path": "/v1/payment_intents",
        "kind": "reset_after",
        "times": 9,
        "match": {"method": "POST"},
    }
    stack.simulate("POST", "/_sim/faults", lost)
    unknown, repeated = said(shop.python(f"{CLIENT}\nbuy('b', 800)\nbuy('b', 800)"))
    assert (unknown[0], json.loads(unknown[2])["code"]) == (504, "outcome-unknown")
    assert (repeated[0], json.loads(repeated[2])["code"]) == (409, "outcome-unknown")

    ref = json.loads(unknown[2])["operation_ref"]
    assert "completed" in shop.manage("idempotency_reconcile", "--key", ref)
    (found,) = said(shop.python(f"{CLIENT}\nbuy('b', 800)"))
    assert (found[0], found[1], json.loads(found[2])["status"]) == (201, "true", "paid")
    assert sorted(effect["amount"] for effect in stack.effects()) == [700, 800]

    # docs/upgrading.md: the tables go, and the business rows stay.
    shop.manage("migrate", "idempotency", "zero")
    assert shop.python("from shop.models import Order\nprint(Order.objects.count())") == "2\n"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_decline_in_the_readmes_example_is_kept(shop: Shop, stack: Stack) -> None:
    gateway = shop.folder / "shop" / "gateway.py"
    gateway.write_text(gateway.read_text().replace("pm_card_visa", "pm_card_chargeDeclined"))
    shop.manage("makemigrations", "shop")
    shop.manage("migrate")
    first, again = said(shop.python(f"{CLIENT}\nbuy('a')\nbuy('a')"))
    assert (first[0], json.loads(first[2])["code"]) == (402, "card-declined")
    assert (again[0], again[1]) == (402, "true")
    assert (
        shop.python("from shop.models import Order\nprint(Order.objects.get().status)")
        == "failed\n"
    )
    assert stack.effects() == []


@pytest.mark.slow
def test_the_readmes_beat_entries_name_tasks_that_exist(shop: Shop) -> None:
    shop.python(
        "from shop_project.celery import app\n"
        "app.loader.import_default_modules()\n"
        "assert len(app.conf.beat_schedule) == 3\n"
        "for entry in app.conf.beat_schedule.values():\n"
        "    assert entry['task'] in app.tasks, entry\n"
    )
