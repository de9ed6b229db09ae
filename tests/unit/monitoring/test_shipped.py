"""What is shipped for monitoring hangs together: every metric named exists, every alert has its runbook entry."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from idempotency import metrics, telemetry
from idempotency.operations import heartbeat
from idempotency.resilience import CircuitBreaker, ReadOnlySwitch
from tests.support.alerting import ROOT, RULES, Rule, rules
from tests.support.promql import names_in

DASHBOARD = ROOT / "idempotency" / "monitoring" / "grafana.json"
RUNBOOK = (ROOT / "docs" / "alerts.md").read_text()
FORBIDDEN = {"key", "key_id", "key_hash", "account", "order", "scope", "actor", "request_id"}


@pytest.fixture
def served(
    db: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> dict[str, set[str]]:
    """Return the names of all samples that can be served, with their labels."""
    settings.IDEMPOTENCY = {
        **settings.IDEMPOTENCY,
        "ADMIN_BREAKERS": lambda request: [CircuitBreaker(name="gateway")],
        "ADMIN_SWITCHES": lambda request: [ReadOnlySwitch()],
    }
    monkeypatch.setattr(metrics, "KEPT", 0.0)
    heartbeat.beat(name="wake")
    for kind in telemetry.catalogue():
        fields = {name: "x" for name in kind.__annotations__ if name != "LABELS"}
        numbers = dict.fromkeys({"seconds", "number", "attempts"} & fields.keys(), 1)
        telemetry.emit(kind(**(fields | numbers)))
    telemetry.emit(telemetry.RunEnded("x", "request", "settled", 1))
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(Client().get("/metrics").content.decode()):
        for sample in family.samples:
            if sample.name.startswith("idempotency_"):
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def expressions() -> Iterator[str]:
    yield from (rule.expr for rule in rules())
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_every_metric_that_a_rule_or_a_panel_names_exists(served: dict[str, set[str]]) -> None:
    named = {name for text in expressions() for name in names_in(text)}
    assert named - set(served) == set()


def test_every_label_that_a_rule_or_a_panel_names_exists(served: dict[str, set[str]]) -> None:
    for text in expressions():
        known = {label for name in names_in(text) for label in served[name]} | {"le"}
        matched = {
            label
            for part in re.findall(r"{(.*?)}", text)
            for label in re.findall(r"(\w+)[=!]", part)
        }
        grouped = {
            label for part in re.findall(r"by \((.*?)\)", text) for label in part.split(", ")
        }
        assert matched | grouped <= known, text


def test_every_event_is_counted(served: dict[str, set[str]]) -> None:
    assert set(metrics.COUNTERS) | {telemetry.KeyMet, telemetry.RequestRefused} == set(
        telemetry.catalogue()
    )
    for name, _ in metrics.COUNTERS.values():
        assert f"idempotency_{name}_total" in served


def test_every_metric_has_its_line_in_the_documentation(served: dict[str, set[str]]) -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    named = set(re.findall(r"`(idempotency_\w+)`", page))
    families = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in served}
    assert {name for name in families if not {name, f"{name}_total"} & named} == set()
    assert named <= families


def test_no_label_tells_who_or_which(served: dict[str, set[str]]) -> None:
    assert set().union(*served.values()) & FORBIDDEN == set()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.name)
def test_an_alert_says_what_it_is_and_has_its_place_in_the_runbook(rule: Rule) -> None:
    assert rule.summary.endswith(".")
    assert rule.severity in {"warning", "critical"}
    entry = RUNBOOK.split(f"\n### {rule.name}\n")[1].split("\n##")[0]
    assert all(f"**{word}**:" in entry for word in ("Means", "Console", "Do"))


def test_the_runbook_has_no_alert_that_is_not_shipped() -> None:
    assert set(re.findall(r"^### (\w+)$", RUNBOOK, re.MULTILINE)) == {rule.name for rule in rules()}


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert all(panel["title"] and panel["targets"] for panel in panels)


def test_they_are_inside_the_package() -> None:
    assert Path(metrics.__file__).parent / "monitoring" == RULES.parent
