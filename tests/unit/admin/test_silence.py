"""What is late says what does not run."""

import pytest

from idempotency.admin.silence import silence


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ([], ""),
        (["beat", "broker", "reconcile", "wake", "tidy"], "Beat does not run"),
        (["broker", "reconcile", "wake"], "the broker takes none of its messages"),
        (["reconcile", "wake", "follow-up"], "No worker does the recurring tasks"),
        (["reconcile"], "Late: reconcile."),
        (["purge", "tidy"], "Late: purge, tidy."),
    ],
)
def test_the_cause_is_named(late: list[str], said: str) -> None:
    assert said in silence(late)
    assert bool(silence(late)) == bool(late)
