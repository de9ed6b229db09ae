"""R26: one absolute budget enters at the edge; each layer takes less than what is left."""

import contextvars
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idempotency.clock import SYSTEM, boottime
from idempotency.resilience import Deadline, current_deadline, deadline_scope
from tests.support.faketime import FakeTime

seconds = st.floats(min_value=0, max_value=1e6)


def test_r26_a_deadline_is_absolute_and_suspend_proof() -> None:
    time = FakeTime()
    deadline = Deadline.after(5, time.clock)
    time.pass_(4)
    assert (deadline.left(), deadline.expired) == (1, False)
    time.pass_(2)
    assert (deadline.left(), deadline.expired) == (-1, True)
    assert SYSTEM.now is boottime


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_r26_a_deadline_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Deadline.after(value)


@given(budget=seconds, reserve=seconds, at_most=st.none() | seconds)
def test_r26_a_child_never_ends_later_than_its_parent_less_the_reserve(
    budget: float, reserve: float, at_most: float | None
) -> None:
    time = FakeTime()
    parent = Deadline.after(budget, time.clock)
    child = parent.child(reserve=reserve, at_most=at_most)
    assert child.at <= parent.at - reserve
    assert at_most is None or child.left() <= at_most + 1e-6


def test_r26_the_ambient_deadline_is_inherited_and_only_ever_nearer() -> None:
    time = FakeTime()
    assert current_deadline() is None
    with deadline_scope(Deadline.after(5, time.clock)) as outer:
        assert current_deadline() is outer
        with deadline_scope(Deadline.after(9, time.clock)):
            assert current_deadline() is outer
        with deadline_scope(None):
            assert current_deadline() is outer
        with deadline_scope(Deadline.after(1, time.clock)) as inner:
            assert current_deadline() is inner
        assert contextvars.copy_context().run(current_deadline) is outer
        assert contextvars.Context().run(current_deadline) is None
    assert current_deadline() is None


@pytest.mark.parametrize(
    ("header", "left"),
    [
        ("250", 0.25),
        (" 250\t", 0.25),
        ("0", 0),
        ("99999", 12),
        (None, 12),
        ("", 12),
        ("-1", 12),
        ("1.5", 12),
        ("1e3", 12),
        ("1_000", 12),
        ("２５０", 12),
        ("12345678901", 12),
        ("250, 250", 12),
        ("250ms", 12),
    ],
)
def test_r26_the_callers_word_is_capped_and_a_malformed_one_ignored(
    header: str | None, left: float
) -> None:
    time = FakeTime()
    assert Deadline.from_header(header, budget=12, clock=time.clock).left() == pytest.approx(left)


@given(left=st.floats(min_value=-5, max_value=100), skew=st.floats(min_value=-1e3, max_value=1e3))
def test_r26_it_crosses_to_another_process_and_skew_is_bounded_by_the_budget(
    left: float, skew: float
) -> None:
    here, there = FakeTime(now=5.0), FakeTime(now=9e6)
    there.wall = here.wall + skew
    sent = Deadline.after(left, here.clock).to_wall_ms()
    received = Deadline.from_wall_ms(sent, budget=30, clock=there.clock)
    assert received.left() == pytest.approx(min(30, left - skew), abs=0.01)
