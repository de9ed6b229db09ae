"""Clients that insist while everything under them is killed, frozen, emptied and lied to: the same invariants.

Drawn from a seed, which a failure names. A short one in the suite, a long one under `make chaos`:

    MACHINE_SEED=1234 make test ARGS="-k test_short_storm"
    MACHINE_OPERATIONS=20000 MACHINE_SECONDS=1800 MACHINE_CLIENTS=20 make chaos ARGS="-k test_long_storm"
"""

import os
from collections.abc import Callable

import pytest
from django.db.models import Sum

from idempotency.models import Key
from payments.models import Account, Receipt, Transfer
from tests.faults.machine.blows import BLOWS, LATEST
from tests.faults.machine.deployment import Deployment
from tests.faults.machine.healing import summary
from tests.faults.machine.invariants import check
from tests.faults.machine.storm import Storm
from tests.faults.machine.storm_plan import script

Deploy = Callable[..., Deployment]
Report = Callable[[str], None]

OPERATIONS = int(os.environ.get("MACHINE_OPERATIONS", "2000"))
SECONDS = float(os.environ.get("MACHINE_SECONDS", "1200"))
CLIENTS = int(os.environ.get("MACHINE_CLIENTS", "8"))
LAG = 0.5
SETTLING = LATEST + LAG + 5.5
"""The gateway must keep its word, or no ledger could: a late effect, seen later still, after the gateway was killed and
has started again on a busy machine."""


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_short_storm(deploy: Deploy, report: Report, seed: int) -> None:
    rage(deploy, report, seed=seed, keyed=bool(seed % 2), intents=150, seconds=20)


@pytest.mark.chaos
@pytest.mark.timeout(int(SECONDS) + 1800)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
def test_long_storm(deploy: Deploy, report: Report, seed: int, keyed: bool) -> None:
    rage(deploy, report, seed=seed, keyed=keyed, intents=OPERATIONS, seconds=SECONDS)


def test_a_script_is_the_same_for_the_same_seed() -> None:
    assert script(seed=3, intents=50, seconds=60) == script(seed=3, intents=50, seconds=60)
    assert {blow.name for blow in script(seed=3, intents=1, seconds=900).blows} == set(BLOWS)


def rage(
    deploy: Deploy, report: Report, *, seed: int, keyed: bool, intents: int, seconds: float
) -> None:
    deployment = deploy(keyed=keyed, breaker=True, settling=SETTLING)
    deployment.start(armed=False)
    deployment.stack.simulate("PUT", "/_sim/config", {"webhooks": "reordered", "lookup_lag": LAG})
    deployment.stack.start("beat")
    money = _balances()
    drawn = script(seed=seed, intents=intents, seconds=seconds)
    replay = f"replay with MACHINE_SEED={seed}; logs in {deployment.stack.home}/log"
    storm = Storm(deployment, drawn, clients=CLIENTS, replay=replay)
    try:
        world = storm.rage(seconds=seconds)
    finally:
        print(f"storm {seed}: {storm.asked} intents; " + "; ".join(storm.blown))
    check(world, replay=f"{replay}; {'; '.join(storm.blown)}")
    # What moves only here: each once, and none made up.
    assert _balances() == money
    for facts in world.facts:
        for model in (Transfer, Receipt):
            made = model._default_manager.filter(key_id=facts.key.id).count() if facts.key else 0
            assert made <= 1, f"{made} rows of {facts}\n{replay}"
            if model is Transfer and "transfer" in facts.talk.path:
                assert made == facts.talk.told_success, f"{facts}\n{replay}"
    gateway = "keyed" if keyed else "unkeyed"
    people = Key.objects.filter(needs_person_since__isnull=False).count()
    report(
        f"storm, {gateway}: {storm.asked} intents, {len(storm.blown)} blows, {len(world.effects)} "
        f"effects, {people} keys shown to a person (seed {seed}); from fault to settlement:"
    )
    for line in summary(storm.healed(world)):
        report(line)


def _balances() -> int:
    return int(Account.objects.aggregate(sum=Sum("balance"))["sum"])
