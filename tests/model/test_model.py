"""Every interleaving of one key's life: with all rules nothing goes wrong, and without any one of them something does.

The model follows the guards of the ledger's SQL; `test_stateful` drives the ledger itself.
"""

import os
from dataclasses import fields

import pytest

from tests.model.scenarios import CHAOS, HOLES, SUITE
from tests.model.search import search
from tests.model.world import Rules

# About 1 GB each; MODEL_STATES=inf looks at all of them.
MOST_STATES = float(os.environ.get("MODEL_STATES", "1e6"))


@pytest.mark.parametrize("name", SUITE)
def test_with_every_rule_nothing_goes_wrong(name: str) -> None:
    assert search(SUITE[name]).traces == {}


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CHAOS)
def test_nor_in_millions_of_states(name: str) -> None:
    found = search(CHAOS[name], most=MOST_STATES)
    which = "all" if found.complete else "the nearest"
    print(f"{name}: {which} {found.states:,} states")
    assert found.traces == {}


@pytest.mark.parametrize("rule", HOLES)
def test_without_the_rule_there_is_a_way_to_the_fault(rule: str) -> None:
    hole = HOLES[rule]
    defended = Rules(**dict.fromkeys(hole.also_out, False))
    assert hole.fault not in search(hole.setting, defended).traces

    found = search(
        hole.setting, Rules(**dict.fromkeys((rule, *hole.also_out), False)), until=hole.fault
    )

    assert hole.fault in found.traces
    print(f"without {rule}: {hole.fault}:", " · ".join(found.traces[hole.fault]))


def test_every_rule_has_its_hole() -> None:
    assert set(HOLES) == {field.name for field in fields(Rules)}
