"""Processes of the host: its driver, and its server behind an async one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from project.embedded.server import HOST, free_port
from tests.packaging.bareproject import ROOT, wait_for


def environment(databases: dict[str, Any], **more: str) -> dict[str, str]:
    """Return what the host's processes find in their environment."""
    return {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "tests.hosts.site.settings",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error::RuntimeWarning",
        "SITE_DATABASES": json.dumps(databases),
        **more,
    }


def drive(databases: dict[str, Any], *, program: str = "drive", **more: str) -> None:
    """Run a program of the host; what it asserts must hold."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.hosts.site.{program}"],
        cwd=ROOT,
        env=environment(databases, **more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("all is well\n"), done.stdout + done.stderr


@contextmanager
def served(databases: dict[str, Any]) -> Iterator[str]:
    """Run the host behind uvicorn; yields its address."""
    port = free_port()
    program = [sys.executable, "-m", "uvicorn", "--host", HOST, "--port", str(port)]
    process = subprocess.Popen(
        [*program, "--log-level", "warning", "tests.hosts.site.asgi:application"],
        cwd=ROOT,
        env=environment(databases),
    )
    try:
        wait_for(f"http://{HOST}:{port}/problems/policy/")
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        process.wait(10)


def manage(databases: dict[str, Any], *words: str, **more: str) -> None:
    """Run a management command."""
    done = subprocess.run(
        [sys.executable, "-m", "django", *words],
        cwd=ROOT,
        env=environment(databases, **more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def migrate(databases: dict[str, Any]) -> None:
    """Make the tables, and a member named `alice` with the password `secret`."""
    manage(databases, "migrate", "-v", "0")
    manage(
        databases,
        *("createsuperuser", "--no-input", "--email", "alice@example.com"),
        DJANGO_SUPERUSER_USERNAME="alice",
        DJANGO_SUPERUSER_PASSWORD="secret",
    )
