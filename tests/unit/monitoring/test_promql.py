"""The evaluator of the tests computes what Prometheus does; where promtool is installed, it is asked."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.alerting import EVERY, RULES, timeline
from tests.support.promql import Labels, Series, evaluate

UNTIL = 2700.0


@pytest.fixture
def series() -> Series:
    """Return gauges that rise and fall, and counters that begin late, stand still, and are reset."""
    return recorded(
        {
            'idempotency_ledger_up{instance="a"}': lambda at: None if 600 < at < 1300 else 1,
            'idempotency_recurring_silent{instance="a",task="beat"}': lambda at: float(
                900 <= at < 1000
            ),
            'idempotency_recurring_silent{instance="a",task="broker"}': lambda at: float(
                900 <= at < 1200
            ),
            'idempotency_recurring_silent{instance="a",task="wake"}': lambda at: float(at >= 900),
            'idempotency_recurring_silent{instance="a",task="reconcile"}': lambda at: float(
                at >= 1500
            ),
            'idempotency_recurring_silent{instance="a",task="mine"}': lambda at: float(at >= 1200),
            'idempotency_oldest_open_age_seconds{instance="a",state="unknown"}': lambda at: at / 3,
            'idempotency_breaker_state{breaker="x",instance="a",state="open"}': lambda at: float(
                at % 600 < 90
            ),
            'idempotency_breaker_state{breaker="x",instance="a",state="half_open"}': lambda at: (
                float(90 <= at % 600 < 150)
            ),
            'idempotency_calls_total{ending="failed",guard="g",instance="a"}': lambda at: (
                max(0, at - 600) // 20
            ),
            'idempotency_calls_total{ending="success",guard="g",instance="a"}': lambda at: (
                at // 7 % 150
            ),
            'idempotency_calls_total{ending="success",guard="h",instance="a"}': lambda at: at // 30,
            'idempotency_operations_moved_total{instance="a",operation="o",to="gave-up"}': lambda at: (
                float(at > 1000)
            ),
            'idempotency_settlements_total{by="run",instance="a",operation="o",state="unknown"}': lambda at: (
                None if at < 700 else at // 40
            ),
            'idempotency_turns_total{instance="a",result="failed",task="wake"}': lambda at: (
                at // 250
            ),
            'idempotency_requests_total{instance="a",operation="o",outcome="reused"}': lambda at: (
                at // 9
            ),
        }
    )


def recorded(shapes: dict[str, Any]) -> Series:
    made, at = Series(), 0.0
    while at <= UNTIL:
        values = {name: shape(at) for name, shape in shapes.items()}
        text = "".join(f"{name} {value}\n" for name, value in values.items() if value is not None)
        made.scrape(text, at=at, instance="a")
        at += EVERY
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", {"x": 3.0, "y": 5.0}),
        ('a{k="x"} + 1', {"x": 4.0}),
        ('a{k!="x"}', {"y": 5.0}),
        ('a{k=~"x|y"} > 4', {"y": 5.0}),
        ("sum(a)", {"": 8.0}),
        ("max by (k) (a) - min by (k) (a)", {"x": 0.0, "y": 0.0}),
        ("a unless a > 4", {"x": 3.0}),
        ("a and a > 4", {"y": 5.0}),
        ("a and on () sum(a) == 8", {"x": 3.0, "y": 5.0}),
        ("a unless on () sum(a) == 8", {}),
        ("a unless on () sum(a) == 7", {"x": 3.0, "y": 5.0}),
        ("absent(b)", {"": 1.0}),
        ("absent(a)", {}),
    ],
)
def test_expressions(text: str, expected: dict[str, float]) -> None:
    found = evaluate(text, recorded({'a{k="x"}': lambda _: 3, 'a{k="y"}': lambda _: 5}), 60)
    assert {dict(labels).get("k", ""): value for labels, value in found.items()} == expected


def test_a_counter_that_was_reset_goes_on() -> None:
    made = recorded({"c_total": lambda at: at if at < 300 else at - 300})
    (increase,) = evaluate("increase(c_total[10m])", made, 600).values()
    # The first sample after the reset is 0: what was counted since the last scrape is lost.
    assert increase == pytest.approx(585, abs=1)


def test_a_value_counts_for_five_minutes() -> None:
    made = recorded({"a": lambda at: 1 if at <= 60 else None})
    assert evaluate("a", made, 360)
    assert not evaluate("a", made, 375)


@pytest.mark.skipif(
    shutil.which("promtool") is None and not os.environ.get("CI"),
    reason="promtool is not installed (Debian: it is in the package prometheus)",
)
def test_prometheus_itself_fires_the_same(series: Series, tmp_path: Path) -> None:
    shipped = yaml.safe_load(RULES.read_text())
    for group in shipped["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(shipped))
    severity = {r["alert"]: r["labels"]["severity"] for g in shipped["groups"] for r in g["rules"]}
    checks = [
        {
            "eval_time": f"{at:.0f}s",
            "alertname": name,
            "exp_alerts": [
                {"exp_labels": {**dict(labels), "severity": severity[name]}}
                for alert, labels in sorted(alerts, key=str)
                if alert == name
            ],
        }
        for at, alerts in timeline(series, until=UNTIL)
        for name in severity
    ]
    assert sum(bool(check["exp_alerts"]) for check in checks) > 100
    test = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": f"{EVERY:.0f}s",
        "tests": [
            {
                "interval": f"{EVERY:.0f}s",
                "input_series": written(series),
                "alert_rule_test": checks,
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yml")],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def written(series: Series) -> list[dict[str, str]]:
    """Return the series in the form of promtool's tests."""
    times = [EVERY * number for number in range(int(UNTIL / EVERY) + 1)]
    return [
        {
            "series": f"{name}{{{_labels(labels)}}}",
            "values": " ".join(
                "_" if value is None else f"{value:g}" for value in map(dict(samples).get, times)
            ),
        }
        for name, by_labels in series.samples.items()
        for labels, samples in by_labels.items()
    ]


def _labels(labels: Labels) -> str:
    return ",".join(f'{name}="{value}"' for name, value in sorted(labels))
