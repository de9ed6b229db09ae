"""Enough of PromQL to evaluate the shipped alert rules over recorded series with a clock that is only a number.

Selectors with `=`, `!=`, `=~`, `!~`; `rate` and `increase` over a range; `absent`; `sum`, `min`, `max` with `by`;
arithmetic, comparison, `and`, `or`, `unless`, also with `on ()`. Where promtool is installed, a test compares the two.
"""

import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
STALE = 300.0
"""Seconds for which a sample counts as the series' present value."""


Samples = list[tuple[float, float]]


@cache
def _parsed(text: str, instance: str) -> tuple[tuple[str, Labels, float], ...]:
    return tuple(
        (sample.name, frozenset({**sample.labels, "instance": instance}.items()), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    )


@dataclass
class Series:
    """What a Prometheus would have stored: by name and labels, the samples with their times."""

    samples: dict[str, dict[Labels, Samples]] = field(default_factory=dict)

    def scrape(self, text: str, *, at: float, instance: str = "web") -> None:
        """Take in one answer of `/metrics`."""
        for name, labels, value in _parsed(text, instance):
            self.samples.setdefault(name, {}).setdefault(labels, []).append((at, value))

    def select(
        self, name: str, wanted: "Callable[[Labels], bool]", since: float, until: float
    ) -> dict[Labels, Samples]:
        """Return the samples of each series that is wanted, between two times, where there are any."""
        found = {}
        for labels, samples in self.samples.get(name, {}).items():
            if wanted(labels):
                first = bisect_left(samples, (since, float("-inf")))
                last = bisect_right(samples, (until, float("inf")))
                if first < last:
                    found[labels] = samples[first:last]
        return found


Matcher = Callable[[Mapping[str, str]], bool]
Node = Callable[[Series, float], Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9.]+(?![0-9a-z]))|(?P<range>\[[0-9]+[smh]\])|(?P<name>[a-zA-Z_:][\w:]*)"
    r'|(?P<text>"[^"]*")|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/(){},=<>]))'
)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_COMPUTE: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a / b if b else float("nan"),
}
_AGGREGATE: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "min": min, "max": max}
_LEVELS = (("or",), ("and", "unless"), tuple(_COMPARE), ("+", "-"), ("*", "/"))


def evaluate(text: str, series: Series, at: float) -> Vector:
    """Return the value of an expression at a time."""
    found = _node(text)(series, at)
    return found if isinstance(found, dict) else {frozenset(): found}


@cache
def _node(text: str) -> Node:
    return _Parser(text).parse()


def names_in(text: str) -> set[str]:
    """Return the metrics that an expression names."""
    return set(re.findall(r"\bidempotency_\w+", text))


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [
            next((kind, value) for kind, value in found.groupdict().items() if value)
            for found in _TOKEN.finditer(text)
        ]
        assert "".join(value for _, value in self._tokens) == re.sub(
            r'\s+(?=([^"]*"[^"]*")*[^"]*$)', "", text
        ), text
        self._at = 0

    def parse(self) -> Node:
        node = self._binary(0)
        assert self._at == len(self._tokens), self._tokens[self._at :]
        return node

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _next(self, wanted: str = "") -> str:
        value = self._peek()
        assert value, "the expression ends too early"
        assert wanted in ("", value), (wanted, value)
        self._at += 1
        return value

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._atom()
        left = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            sign = self._next()
            anything = self._peek() == "on"
            for word in ("on", "(", ")") if anything else ():
                self._next(word)
            left = _combined(sign, left, self._binary(level + 1), anything=anything)
        return left

    def _atom(self) -> Node:
        kind, value = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return lambda series, at: float(value)
        if value == "(":
            inner = self._binary(0)
            self._next(")")
            return inner
        if value in _AGGREGATE:
            return self._aggregation(_AGGREGATE[value])
        if value in ("rate", "increase", "absent"):
            self._next("(")
            inner = self._binary(0)
            self._next(")")
            return (
                _absent(inner) if value == "absent" else _growth(inner, per_second=value == "rate")
            )
        return self._selector(value)

    def _aggregation(self, join: Callable[[Iterable[float]], float]) -> Node:
        kept: set[str] = set()
        if self._peek() == "by":
            self._next()
            self._next("(")
            while self._peek() != ")":
                kept.add(self._next())
                if self._peek() == ",":
                    self._next()
            self._next(")")
        self._next("(")
        inner = self._binary(0)
        self._next(")")

        def node(series: Series, at: float) -> Vector:
            groups: dict[Labels, list[float]] = {}
            for labels, value in inner(series, at).items():
                group = frozenset((name, of) for name, of in labels if name in kept)
                groups.setdefault(group, []).append(value)
            return {group: join(values) for group, values in groups.items()}

        return node

    def _selector(self, name: str) -> Node:
        matchers: list[Matcher] = []
        if self._peek() == "{":
            self._next()
            while self._peek() != "}":
                matchers.append(_matcher(self._next(), self._next(), self._next().strip('"')))
                if self._peek() == ",":
                    self._next()
            self._next("}")

        @cache
        def wanted(labels: Labels) -> bool:
            return all(matches(dict(labels)) for matches in matchers)

        if self._peek().startswith("["):
            span = self._next()
            seconds = float(span[1:-2]) * _UNITS[span[-2]]
            return lambda series, at: (seconds, series.select(name, wanted, at - seconds, at))
        return lambda series, at: {
            labels: samples[-1][1]
            for labels, samples in series.select(name, wanted, at - STALE, at).items()
        }


def _matcher(name: str, sign: str, value: str) -> Matcher:
    if sign in ("=~", "!~"):
        pattern = re.compile(value)
        return lambda labels: bool(pattern.fullmatch(labels.get(name, ""))) == (sign == "=~")
    return lambda labels: (labels.get(name, "") == value) == (sign == "=")


def _absent(inner: Node) -> Node:
    return lambda series, at: {} if inner(series, at) else {frozenset(): 1.0}


def _growth(inner: Node, *, per_second: bool) -> Node:
    """Extrapolated to the whole range, as Prometheus does it."""

    def node(series: Series, at: float) -> Vector:
        seconds, found = inner(series, at)
        grown = {}
        for labels, samples in found.items():
            if len(samples) < 2:
                continue
            increase = sum(
                later - earlier if later >= earlier else later
                for (_, earlier), (_, later) in pairwise(samples)
            )
            grown[labels] = increase * _stretch(samples, at, seconds, increase)
        return {labels: value / seconds if per_second else value for labels, value in grown.items()}

    return node


def _stretch(
    samples: list[tuple[float, float]], at: float, seconds: float, increase: float
) -> float:
    (first, value), (last, _) = samples[0], samples[-1]
    spacing = (last - first) / (len(samples) - 1)
    before, after = first - (at - seconds), at - last
    if increase > 0 and value >= 0:
        # A counter cannot have been below zero.
        before = min(before, (last - first) * value / increase)
    before = before if before < 1.1 * spacing else spacing / 2
    after = after if after < 1.1 * spacing else spacing / 2
    return (last - first + before + after) / (last - first)


def _combined(sign: str, left: Node, right: Node, *, anything: bool) -> Node:
    """Join two vectors; `anything`: by no label, so that a right side with anything in it matches all."""

    def node(series: Series, at: float) -> Any:
        a, b = left(series, at), right(series, at)
        if sign in ("and", "unless"):
            return {
                k: v for k, v in a.items() if (bool(b) if anything else k in b) == (sign == "and")
            }
        if sign == "or":
            return b | a
        if not isinstance(a, dict):
            raise NotImplementedError("a number on the left")
        pairs = {
            k: (v, b[k] if isinstance(b, dict) else b)
            for k, v in a.items()
            if not isinstance(b, dict) or k in b
        }
        if sign in _COMPARE:
            return {k: v for k, (v, w) in pairs.items() if _COMPARE[sign](v, w)}
        return {k: _COMPUTE[sign](v, w) for k, (v, w) in pairs.items()}

    return node
