"""Twins: the same request, at the same moment, over connections and processes of their own. One charge each round.

TWIN_ROUNDS=100 make chaos ARGS="-k twins"
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.machine.talk import Heard, ask
from tests.support.stack import Stack

ROUNDS = int(os.environ.get("TWIN_ROUNDS", "100"))
ORDER = {"order_id": "881", "amount": 1200, "currency": "EUR", "source": "pm_card_visa"}


@pytest.fixture(scope="module")
def kept_stack(made_stack: Stack) -> Stack:
    """Two web servers with two processes each, which know of one another by the database alone."""
    made_stack.start("simulator")
    made_stack.start_web(workers=2)
    made_stack.start_web(name="second", workers=2)
    return made_stack


@pytest.mark.slow
@pytest.mark.parametrize(("twins", "rounds"), [(2, 10), (20, 3), (50, 2)])
@pytest.mark.timeout(300)
def test_a9_of_any_number_of_twins_one_charges(
    shared_stack: Stack, twins: int, rounds: int
) -> None:
    race(shared_stack, twins=twins, rounds=rounds)


@pytest.mark.chaos
@pytest.mark.parametrize("twins", [2, 20, 50])
@pytest.mark.timeout(3600)
def test_a9_of_any_number_of_twins_one_charges_for_long(shared_stack: Stack, twins: int) -> None:
    race(shared_stack, twins=twins, rounds=ROUNDS)


def race(stack: Stack, *, twins: int, rounds: int) -> None:
    with ThreadPoolExecutor(twins) as pool:
        for number in range(rounds):
            key, gate = f"twins-{number}", threading.Barrier(twins)

            def twin(place: int, key: str = key, gate: threading.Barrier = gate) -> Heard:
                url = stack.url(("web", "second")[place % 2])
                gate.wait(60)
                return ask("POST", f"{url}/api/payments/", body=ORDER, key=key, timeout=90)

            heard = list(pool.map(twin, range(twins)))
            one_won(heard, where=f"round {number} of {twins} twins; logs in {stack.home}/log")
            assert len(stack.effects()) == number + 1, f"round {number} of {twins} twins"


def one_won(heard: list[Heard], *, where: str) -> None:
    """Exactly one was first; the others heard its very answer, or that it was under way."""
    told = [each for each in heard if each.status == 201]
    first = [each for each in told if not each.replayed]
    losers = [each for each in heard if each.status != 201]
    assert len(first) == 1, f"{where}: {list(map(str, heard))}"
    assert {each.body for each in told} == {first[0].body}, where
    assert all((e.status, e.code) == (409, "in-progress") for e in losers), (
        f"{where}: {list(map(str, losers))}"
    )
    assert all(int(each.headers["Retry-After"]) >= 1 for each in losers), where
