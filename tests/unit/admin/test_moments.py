"""Times as they are said."""

from datetime import UTC, datetime, timedelta

import pytest

from idempotency.admin.moments import day_and_time, distance, duration

NOW = datetime(2026, 11, 29, 14, 2, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3_599, "59 min"),
        (3_600, "1 h"),
        (3_900, "1 h 5 min"),
        (86_400 * 2 + 3_600 * 3, "2 d 3 h"),
        (86_400 * 40, "40 d"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_distances_have_a_direction() -> None:
    assert distance(NOW + timedelta(seconds=40), now=NOW) == "in 40 s"
    assert distance(NOW - timedelta(minutes=3), now=NOW) == "3 min ago"


@pytest.mark.parametrize("seconds", [-0.4, 0, 0.4])
def test_what_is_less_than_half_a_second_away_is_now(seconds: float) -> None:
    assert distance(NOW + timedelta(seconds=seconds), now=NOW) == "now"


@pytest.mark.parametrize(
    ("days", "text"), [(0, "14:02"), (1, "28 Nov 14:02"), (400, "25 Oct 2025 14:02")]
)
def test_the_date_is_said_where_it_is_not_today(days: int, text: str) -> None:
    assert day_and_time(NOW - timedelta(days=days), now=NOW) == text
