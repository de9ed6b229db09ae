"""R25: attempts, full jitter, the other side's word, the retry budget."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idempotency.clock import Clock
from idempotency.resilience import RetryBudget, RetryPolicy, jittered
from idempotency.resilience.retryafter import LONGEST, parse_retry_after, parse_retry_info

NOW = 784111777.0
"""Sun, 06 Nov 1994 08:49:37 GMT."""


@given(
    base=st.floats(0, 10),
    extra=st.floats(0, 100),
    retries=st.integers(0, 5000),
    seed=st.floats(0, 1),
)
def test_r25_a_pause_of_our_own_is_within_zero_and_the_cap(
    base: float, extra: float, retries: int, seed: float
) -> None:
    policy = RetryPolicy(base=base, cap=base + extra)
    clock = Clock(uniform=lambda low, high: low + seed * (high - low))
    pause = policy.pause(retries, clock=clock)
    assert 0 <= pause <= min(policy.cap, base * 2.0 ** min(retries, 64))


def test_r25_full_jitter_doubles_its_range_up_to_the_cap() -> None:
    top = Clock(uniform=lambda low, high: high)
    bottom = Clock(uniform=lambda low, high: low)
    policy = RetryPolicy(base=0.1, cap=5)
    assert [policy.pause(n, clock=top) for n in range(8)] == pytest.approx(
        [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]
    )
    assert policy.pause(3, clock=bottom) == 0


@given(word=st.floats(min_value=0.001, max_value=1e9))
def test_r25_the_word_wins_and_is_never_shortened(word: float) -> None:
    assert RetryPolicy(base=0.1, cap=0.2).pause(0, word=word) == word


def test_r25_a_word_of_zero_leaves_the_pause_to_us() -> None:
    top = Clock(uniform=lambda low, high: high)
    assert RetryPolicy(base=0.1).pause(0, word=0.0, clock=top) == 0.1


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"attempts": 0}, "attempts"),
        ({"base": -1}, "base"),
        ({"base": math.nan}, "base"),
        ({"cap": math.inf}, "cap"),
        ({"base": 2.0, "cap": 1.0}, "cap"),
        ({"attempt_timeout": 0}, "attempt_timeout"),
        ({"useful": 0}, "useful"),
        ({"series": 1.0, "attempt_timeout": 3.0}, "series"),
        ({"reserve": -0.1}, "reserve"),
    ],
    ids=str,
)
def test_r26_a_policy_that_cannot_work_is_refused_by_name(
    changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        RetryPolicy(**changed)


def test_r26_the_worst_case_is_attempts_pauses_and_reserve_within_the_series() -> None:
    policy = RetryPolicy(attempts=3, base=0.05, cap=1, attempt_timeout=3, series=20, reserve=0.1)
    assert policy.worst_case == pytest.approx(3 * 3 + 0.05 + 0.1 + 0.1)
    assert RetryPolicy(attempts=9, attempt_timeout=3, series=5).worst_case == pytest.approx(5.1)
    assert RetryPolicy(attempts=1, attempt_timeout=3, reserve=0).worst_case == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        ("1", 1.0),
        ("120", 120.0),
        ("0120", 120.0),
        (" 7\t", 7.0),
        ("86400", 86_400.0),
        # A moment in seconds since 1970.
        ("1767225600", LONGEST),
        ("9999999999", LONGEST),
        ("9" * 5000, LONGEST),
        ("0" * 5000 + "3", 3.0),
        ("Sun, 06 Nov 1994 08:49:47 GMT", 10.0),
        ("Sunday, 06-Nov-94 08:49:47 GMT", 10.0),
        ("Sun Nov  6 08:49:47 1994", 10.0),
        ("Sun Nov 06 08:49:47 1994", 10.0),
        ("Sun, 06 Nov 1994 08:49:27 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Sun, 06 Nov 1994 08:49:60 GMT", 22.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST),
    ],
    ids=lambda value: str(value)[:40],
)
def test_r25_valid_words(value: str, expected: float) -> None:
    assert parse_retry_after(value, now=NOW) == expected


@pytest.mark.parametrize("off", [-18_000, 18_000])
def test_r25_a_date_is_counted_from_the_answers_own(off: int) -> None:
    date, at = "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:47 GMT"
    assert parse_retry_after(at, now=NOW + off, date=date) == 10.0
    assert parse_retry_after(at, now=NOW, date="yesterday") == 10.0
    assert parse_retry_after("7", now=NOW + off, date=date) == 7.0


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "-1",
        "+1",
        "1.5",
        "1,5",
        "1e3",
        "1_000",
        "0x10",
        "１２０",
        "١٢",
        "²",
        "inf",
        "nan",
        "soon",
        "1, 1",
        "1, 60",
        "1 s",
        "\n1",
        "1\n",
        "\x0b1",
        "Sun, 06 Nov 1994 08:49:47",
        "Sun, 06 Nov 1994 08:49:47 +0000",
        "Sun, 06 Nov 1994 08:49:47 UTC",
        "sun, 06 nov 1994 08:49:47 gmt",
        "06 Nov 1994 08:49:47 GMT",
        "Sun, 32 Nov 1994 08:49:47 GMT",
        "Sun, 31 Feb 1994 08:49:47 GMT",
        "Sun, 06 Nov 0000 08:49:47 GMT",
        "Sun, 06 Nov 1994 24:49:47 GMT",
        "Sun, 06 Nov 1994 08:49:47 GMT, Sun, 06 Nov 1994 08:49:47 GMT",
        "1994-11-06T08:49:47Z",
    ],
    ids=repr,
)
def test_r25_malformed_words_are_no_word(value: str | None) -> None:
    assert parse_retry_after(value, now=NOW) is None


@given(value=st.text(max_size=40), now=st.floats(0, 4e9))
def test_r25_any_text_gives_no_word_or_a_bounded_one(value: str, now: float) -> None:
    word = parse_retry_after(value, now=now)
    assert word is None or 0 <= word <= LONGEST


def _field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def _status(duration: bytes, url: bytes = b"type.googleapis.com/google.rpc.RetryInfo") -> bytes:
    info = _field(1, url) + _field(2, _field(1, duration))
    return b"\x08\x0e" + _field(2, b"busy") + _field(3, info)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (_status(b"\x08\x05"), 5.0),
        (_status(b"\x08\x01\x10\x80\xca\xb5\xee\x01"), 1.5),
        (_status(b""), 0.0),
        (_status(b"\x08\x80\xf2\xd6\xca\x06"), LONGEST),
        (_status(b"\x08\x05", url=b"type.googleapis.com/google.rpc.Help"), None),
        (_status(b"\x08" + b"\xff" * 9 + b"\x01"), None),
        (b"", None),
        (b"\xff\xff", None),
        (b"\x1a\x7f", None),
        (b"\x1b", None),
        (b"\x18\x01", None),
    ],
    ids=repr,
)
def test_r25_grpc_retry_info(details: bytes, expected: float | None) -> None:
    assert parse_retry_info(details) == expected


@given(st.binary(max_size=80))
def test_r25_any_trailer_gives_no_word_or_a_bounded_one(details: bytes) -> None:
    word = parse_retry_info(details)
    assert word is None or 0 <= word <= LONGEST


@given(st.lists(st.booleans(), max_size=300), st.floats(0, 1), st.integers(1, 20))
def test_r25_the_budget_bounds_retries_by_calls(
    steps: list[bool], ratio: float, burst: int
) -> None:
    budget = RetryBudget(ratio=ratio, burst=burst)
    calls = retries = 0
    for is_call in steps:
        if is_call:
            budget.earn()
            calls += 1
        else:
            retries += budget.spend()
    assert retries <= burst + ratio * calls + 1e-6


@pytest.mark.parametrize("wrong", [{"ratio": -0.1}, {"ratio": 1.1}, {"burst": 0}], ids=str)
def test_r25_a_budget_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        RetryBudget(**wrong)


@given(seconds=st.floats(0, 1e4), seed=st.floats(0, 1))
def test_r25_an_emitted_retry_after_is_whole_jittered_and_never_less(
    seconds: float, seed: float
) -> None:
    clock = Clock(uniform=lambda low, high: low + seed * (high - low))
    told = jittered(seconds, spread=0.5, clock=clock)
    assert isinstance(told, int)
    assert max(1, seconds) <= told <= max(1, math.ceil(seconds * 1.5 + 1e-6))


def test_r25_jitter_of_the_system_clock_really_spreads() -> None:
    assert len({jittered(1000) for _ in range(50)}) > 20
