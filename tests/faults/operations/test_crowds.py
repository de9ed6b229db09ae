"""Many rows, many workers, and kills at random moments. `make chaos`; the seed is printed, CHAOS_SEED replays it."""

import os
import random
import time

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.db.models import Count

from idempotency.models import Key, Operation
from idempotency.operations import defer
from tests.support.stack import Stack

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
PAYOUT = {"currency": "EUR", "destination": "acct_1Tests"}
WORKERS = ("one", "two", "three", "four")


def promise_many(count: int) -> None:
    with transaction.atomic():
        for number in range(count):
            defer("poison.mark", {"n": number}, delay=0.001)


def unfinished() -> int:
    return Key.objects.exclude(state="completed").count()


def committed_transactions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def test_ten_thousand_due_at_once_go_to_four_workers_and_none_to_two(stack: Stack) -> None:
    count = int(os.environ.get("CHAOS_ROWS", "10000"))
    promise_many(count)
    for name in WORKERS:
        stack.start_worker(name=name)
    began = time.monotonic()
    stack.start("beat")
    stack.wait_until(lambda: not unfinished(), "all are done", seconds=600)
    seconds = time.monotonic() - began

    print(f"{count} operations in {seconds:.1f} s: {count / seconds:.0f} per second")
    assert Operation.objects.exclude(attempts=1).count() == 0
    names = Group.objects.filter(name__contains="/").values_list("name", flat=True)
    assert len(names) == count
    assert len({name.partition("/")[0] for name in names}) == count


def test_ten_idle_workers_cost_almost_nothing(stack: Stack) -> None:
    stack.environment |= {"IDEMPOTENCY_WAKE_EVERY": "5", "IDEMPOTENCY_RECONCILE_EVERY": "5"}
    stack.start_worker(concurrency=10)
    stack.start("beat")
    time.sleep(5)
    before, began = committed_transactions(), time.monotonic()
    time.sleep(20)
    rate = (committed_transactions() - before) / (time.monotonic() - began)

    print(f"{rate:.1f} transactions per second")
    assert rate < 10


def test_kills_at_random_moments(stack: Stack) -> None:
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"CHAOS_SEED={seed}")
    chance = random.Random(seed)
    stack.environment |= {
        "IDEMPOTENCY_LEASE": "8",
        "IDEMPOTENCY_OPERATION_TIME_LIMIT": "5",
        # A worker that is killed in its run has begun it; that is not what this test is about.
        "IDEMPOTENCY_OPERATION_MAX_ATTEMPTS": "50",
        "PAYMENTS_GATEWAY_TIMEOUT": "1",
        "PAYMENTS_GATEWAY_SETTLING_TIME": "1",
    }
    stack.start("simulator", "web", "beat")
    for name in WORKERS:
        stack.start_worker(name=name)
    count, kinds = int(os.environ.get("CHAOS_OPERATIONS", "300")), ("hang_after", "reset_before")
    for number in range(count):
        if number % 20 == 0:
            fault = {"path": "/v1/payouts", "kind": chance.choice(kinds), "times": 1}
            stack.simulate("POST", "/_sim/faults", fault)
        answer = stack.post("/api/payouts/", {**PAYOUT, "amount": 100 + number}, key=f"k{number}")
        assert answer.status_code == 202
        if number % 25 == 24:
            name = chance.choice([*WORKERS, "beat"])
            stack.kill(name)
            stack.start("beat") if name == "beat" else stack.start_worker(name=name)
    stack.wait_until(lambda: not unfinished(), "all are settled", seconds=300)

    amounts = [effect["amount"] for effect in stack.effects()]
    assert sorted(amounts) == [100 + number for number in range(count)]
    assert Operation.objects.filter(result__isnull=True).count() == 0
    tries = Operation.objects.values("attempts").annotate(count=Count("id")).order_by("attempts")
    print("attempts:", {row["attempts"]: row["count"] for row in tries})
