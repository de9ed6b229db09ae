"""The shipped alert rules, run over what was scraped: which fire, and after how many seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.promql import Labels, Series, evaluate

ROOT = Path(__file__).parents[2]
RULES = ROOT / "idempotency" / "monitoring" / "alerts.yml"
EVERY = 15.0
"""Seconds between two scrapes, and two evaluations."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Rule:
    """One alert."""

    name: str
    expr: str
    patience: float
    """Seconds for which it must hold."""
    severity: str
    summary: str


@cache
def rules() -> list[Rule]:
    """Return the rules that are shipped."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    return [
        Rule(
            rule["alert"],
            rule["expr"],
            _seconds(rule.get("for", "0s")),
            rule["labels"]["severity"],
            rule["annotations"]["summary"],
        )
        for group in groups
        for rule in group["rules"]
    ]


def firing(series: Series, *, since: float, until: float) -> dict[str, float]:
    """Return the alerts that fire between two times, with the seconds after `since` at which each does first."""
    found: dict[str, float] = {}
    for at, alerts in timeline(series, until=until):
        for name, _ in alerts if at >= since else ():
            found.setdefault(name, at - since)
    return found


def timeline(series: Series, *, until: float) -> Iterator[tuple[float, set[tuple[str, Labels]]]]:
    """Yield at each evaluation the alerts that fire, each with its labels."""
    active: dict[tuple[str, Labels], float] = {}
    at = 0.0
    while at <= until:
        holding = {
            (rule.name, labels): rule.patience
            for rule in rules()
            for labels in evaluate(rule.expr, series, at)
        }
        active = {alert: active.get(alert, at) for alert in holding}
        yield at, {alert for alert, begun in active.items() if at - begun >= holding[alert]}
        at += EVERY


def story(*scrapes: tuple[str, float]) -> tuple[Series, float]:
    """Return the series of scrapes that each stay as they are for so many seconds, and the time at the end."""
    series, at = Series(), 0.0
    for text, seconds in scrapes:
        end = at + seconds
        while at < end:
            if text:
                series.scrape(text, at=at)
            at += EVERY
    return series, at - EVERY


def fires_after(
    fault: str, *, healthy: str, seconds: float, then: Sequence[str] = ()
) -> dict[str, float]:
    """Return what fires while a fault's scrape stays for so long after ten healthy minutes; then one scrape each."""
    series, end = story((healthy, 600.0), (fault, seconds), *((text, EVERY) for text in then))
    return firing(series, since=600.0, until=end)


def _seconds(text: str) -> float:
    return float(text[:-1]) * _UNITS[text[-1]]
