from __future__ import annotations

import re

import pytest

from payments.simulator.faults.kinds import KINDS, Applied, FaultKind, Step

# The contract's own names come first; new ones end in what became of the effect.
WITHOUT_SUFFIX = {"refuse_503", "rate_limit_429", "drip", "late_success"}
OF_THE_CONTRACT = WITHOUT_SUFFIX | {
    "error_500_before", "error_500_after", "bad_gateway_502_after", "hang_before", "hang_after",
    "reset_before", "reset_after", "truncate_after", "garbage_after",
}  # fmt: skip


def test_the_contracts_kinds_are_there() -> None:
    assert set(KINDS) >= OF_THE_CONTRACT


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_name_tells_what_became_of_the_effect(kind: FaultKind) -> None:
    if kind.name not in WITHOUT_SUFFIX:
        suffix = "before" if kind.applied is Applied.NEVER else "after"
        assert re.fullmatch(rf"[a-z0-9_]+_{suffix}", kind.name)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_entry_makes_sense(kind: FaultKind) -> None:
    if kind.applied is Applied.NEVER and kind.tells_status:
        assert kind.instead is not None
    if kind.unread:
        assert kind.applied is Applied.NEVER
    if kind.kept:
        assert kind.instead is not None
    assert kind.wire[:-1].count(Step.CLOSE) == kind.wire[:-1].count(Step.RESET) == 0
