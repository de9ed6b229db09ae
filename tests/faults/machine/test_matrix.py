"""Kill point × fault of the gateway × keyed or not × who settles: money moves once, and every key ends.

A few cells in the suite; under `make chaos` a sample drawn anew each time, and everything. To replay, by seed, by
number or by traits:

    MACHINE_SEED=1234 make chaos ARGS="-k test_sample"
    MACHINE_CELLS=300 make chaos ARGS="-k test_sample"
    MACHINE_CELL="unkeyed payment web:after_call:kill reset_after" make chaos ARGS="-k test_sample"
"""

import os
import time
from collections.abc import Callable

import pytest

from tests.faults.machine.axes import BY_HAND, FAULTS, Cell, matrix, sample
from tests.faults.machine.deployment import HEALS_WITHIN, Deployment
from tests.faults.machine.healing import Healed, summary
from tests.faults.machine.invariants import check
from tests.faults.machine.play import Round, rounds

Deploy = Callable[..., Deployment]
Report = Callable[[str], None]
CELLS = int(os.environ.get("MACHINE_CELLS", "30"))
FEW = 12
# What a loaded machine may add to the promised time.
SLACK = 60.0


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_few(deploy: Deploy, report: Report, seed: int) -> None:
    # The other kind of gateway than the short storm takes.
    keyed = not seed % 2
    chosen = sample(matrix(keyed=keyed), seed=seed, count=FEW)
    play(deploy, report, chosen, seed=seed, keyed=keyed, size=FEW)


@pytest.mark.chaos
@pytest.mark.timeout(400 + 10 * CELLS)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
def test_sample(deploy: Deploy, report: Report, seed: int, keyed: bool) -> None:
    chosen = _named(matrix(keyed=keyed)) or sample(matrix(keyed=keyed), seed=seed, count=CELLS)
    play(deploy, report, chosen, seed=seed, keyed=keyed, size=50)


@pytest.mark.chaos
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
def test_everything(deploy: Deploy, report: Report, seed: int, keyed: bool) -> None:
    play(deploy, report, matrix(keyed=keyed), seed=seed, keyed=keyed, size=100)


def test_the_short_times_are_such_as_the_checks_allow(deploy: Deploy) -> None:
    assert "no issues" in deploy(keyed=True).manage("check", "--fail-level", "ERROR")


def test_the_matrix_has_every_meaning_of_a_fault() -> None:
    assert {"hang_before", "reset_after", "late_success", "refuse_503"} & set(FAULTS)
    assert 10 < len(FAULTS) < 25
    cells = matrix(keyed=True)
    assert len({cell.amount for cell in cells}) == len(cells)
    assert sample(cells, seed=1, count=40) == sample(cells, seed=1, count=40)
    assert {cell.settler for cell in sample(cells, seed=1, count=40)} == {c.settler for c in cells}


def play(
    deploy: Deploy, report: Report, cells: list[Cell], *, seed: int, keyed: bool, size: int
) -> None:
    began = time.monotonic()
    deployment = deploy(keyed=keyed)
    deployment.start()
    times: list[Healed] = []
    beating = False
    for chosen in rounds(cells, size=size):
        by_itself = chosen[0].settler not in BY_HAND
        if by_itself and not beating:
            deployment.stack.start("beat")
            beating = True
        game = Round(deployment, chosen, seed=seed)
        world = game.play()
        check(world, replay=f"replay with MACHINE_SEED={seed}; logs in {deployment.stack.home}/log")
        if by_itself:
            times += game.healed(world)
    gateway = "keyed" if keyed else "unkeyed"
    took = time.monotonic() - began
    report(
        f"matrix, {gateway}: {len(cells)} cells in {took:.0f} s (seed {seed}); from strike to settlement, "
        f"promised within {HEALS_WITHIN:g} s:"
    )
    for line in summary(times):
        report(line)
    late = [each for each in times if each.seconds > HEALS_WITHIN + SLACK]
    assert not late, f"not settled within {HEALS_WITHIN} s: {late}; MACHINE_SEED={seed}"


def _named(cells: list[Cell]) -> list[Cell]:
    """Return the cells that have all traits that MACHINE_CELL names."""
    words = os.environ.get("MACHINE_CELL", "").split()
    return [cell for cell in cells if words and set(words) <= set(str(cell).split())]
