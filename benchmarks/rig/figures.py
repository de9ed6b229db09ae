"""Interleave what is compared, and say how it compares."""

import random
import statistics
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def interleaved(cells: Sequence[T], rounds: int) -> Iterator[T]:
    """Yield every cell once per round, in a new random order each, so that a noisy machine harms all alike."""
    for _ in range(rounds):
        yield from random.sample(cells, len(cells))


def ratio(ours: Sequence[float], base: Sequence[float]) -> str:
    """Return the median of the rounds' ratios, and their quartiles: `1.31 (1.28–1.36)`."""
    return spread([mine / theirs for mine, theirs in zip(ours, base, strict=True)])


def spread(values: Sequence[float]) -> str:
    """Return the median and the quartiles as text."""
    return told(*spread_of(values))


def told(low: float, middle: float, high: float) -> str:
    """Return the three as text."""
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def spread_of(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def ratio_of_excess(
    ours: Sequence[float], other: Sequence[float], base: Sequence[float]
) -> tuple[float, float, float]:
    """Return how much more `ours` adds to `base` than `other` does, by medians over the rounds.

    A round's own ratio of two small differences says nothing; quartiles are of 500 resamplings of the rounds (Efron's
    bootstrap).
    """
    rounds = list(zip(ours, other, base, strict=True))

    def of(sample: Sequence[tuple[float, float, float]]) -> float:
        added = statistics.median(mine - nothing for mine, _, nothing in sample)
        least = statistics.median(theirs - nothing for _, theirs, nothing in sample)
        return added / least if least > 0 else float("inf")

    low, _, high = spread_of([of(random.choices(rounds, k=len(rounds))) for _ in range(500)])
    return low, of(rounds), high


def resampled(values: Sequence[float], share: float) -> tuple[float, float, float]:
    """Return the percentile with the quartiles of 200 resamplings: how far another run may be from this one."""
    low, _, high = spread_of(
        [percentile(random.choices(values, k=len(values)), share) for _ in range(200)]
    )
    return low, percentile(values, share), high


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
