"""The deployment files start what `make run` starts, and say nothing that cannot be read."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from project import parts

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
SWEEP = ["manage.py", "idempotency_wake", "--run", "--loop", "--every", "60"]
EXPECTED = {
    "web": list(parts.web(port=8000).words),
    "worker": list(parts.worker().words),
    "beat": list(parts.beat().words),
    "sweep": SWEEP,
}


def in_the_procfile() -> dict[str, list[str]]:
    lines = re.findall(r"^(\w+): python (.+)$", (DEPLOY / "Procfile").read_text(), re.MULTILINE)
    return {name: shlex.split(command) for name, command in lines}


def in_compose() -> dict[str, list[str]]:
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return {
        name: service["command"][1:]
        for name, service in services.items()
        if service.get("command", [""])[0] == "python"
    }


def in_the_units() -> dict[str, list[str]]:
    found = {}
    for unit in (DEPLOY / "systemd").glob("ledger-*.service"):
        command = re.search(r"^ExecStart=\S+/python (.+)$", unit.read_text(), re.MULTILINE)
        assert command is not None
        # systemd has percent signs of its own.
        words = shlex.split(command[1].replace("%%", "%"))
        found[unit.stem.removeprefix("ledger-")] = words
    return found


@pytest.mark.parametrize("read", [in_the_procfile, in_compose, in_the_units])
def test_each_file_starts_what_make_run_starts(read: Any) -> None:
    commands = read()
    migrates = ["manage.py", "migrate", "--no-input"]
    assert commands.pop("release", migrates) == migrates
    assert commands == EXPECTED


def test_the_environment_names_every_variable_that_has_no_default() -> None:
    text = (DEPLOY / "environment.example").read_text()
    named = set(re.findall(r"^([A-Z_]+)=", text, re.MULTILINE))
    assert {"SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL"} <= named
    assert {"PAYMENTS_GATEWAY_URL", "PAYMENTS_WEBHOOK_SECRET"} <= named
    assert "SECRET_KEY=\n" in text


def test_a_stop_waits_longer_than_the_longest_task(settings: Any) -> None:
    for name in ("worker", "sweep"):
        unit = (DEPLOY / "systemd" / f"ledger-{name}.service").read_text()
        stop = re.search(r"TimeoutStopSec=(\d+)", unit)
        assert stop is not None
        assert int(stop[1]) > settings.CELERY_TASK_TIME_LIMIT


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        text = unit.read_text().replace("/opt/ledger/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(text.replace("/opt/ledger", str(ROOT)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(tmp_path.glob("*.service"))],
        capture_output=True,
        text=True,
        check=False,
    )
    # Other units of the machine may be reported too.
    assert "ledger-" not in done.stderr
