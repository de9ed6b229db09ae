"""The documentation's shell, its clients and its commands, against real processes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PAGES = sorted({block.page for block in blocks(run="stack")})


@pytest.fixture
def stack(live_stack: Stack) -> Iterator[Stack]:
    live_stack.environment |= {"IDEMPOTENCY_WAKE_EVERY": "1", "IDEMPOTENCY_RECONCILE_EVERY": "1"}
    live_stack.start("simulator", "web", "worker", "beat")
    yield live_stack


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, stack: Stack, tmp_path: Path) -> None:
    for block in [block for block in blocks(run="stack") if block.page == page]:
        if block.language == "js" and shutil.which("node") is None:
            pytest.skip("no Node on this machine")
        said = run(block, stack, tmp_path)
        for output in blocks(output=block.attributes.get("name", "-")):
            assert_says(said, output)


def run(block: Block, stack: Stack, folder: Path) -> str:
    """Run it with the ports of this stack; return what it prints."""
    body = block.body.replace("127.0.0.1:8000", f"127.0.0.1:{stack.ports['web']}")
    body = body.replace("127.0.0.1:12111", f"127.0.0.1:{stack.ports['simulator']}")
    command = {
        "sh": ["bash", "-euo", "pipefail", "-c", body],
        "python": [sys.executable, "-W", "error", "-c", body],
        "js": ["node", "--input-type=module", "-e", body],
    }[block.language]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "no_proxy": "*", "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, f"{block.label}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def assert_says(said: str, output: Block) -> None:
    """Find each line that is shown, ids and times aside."""
    for line in filter(None, plain(output.body).splitlines()):
        assert line in plain(said), f"{output.label}: {line!r} is not in\n{said}"


def plain(text: str) -> str:
    """Return the text without what differs each time."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)
    # The words after the status are those of the server's Python.
    text = re.sub(r"(?m)^(HTTP/1.1 \d{3}) .*$", r"\1", text)
    text = re.sub(r"pi_[0-9a-f]{24}", "<gateway id>", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text.replace("\r", ""))


def test_quickstart_charged_once_for_each_order(stack: Stack, tmp_path: Path) -> None:
    for block in blocks(run="stack"):
        if block.page == "docs/quickstart.md":
            run(block, stack, tmp_path)
    stack.wait_until(
        lambda: not stack.get("/api/payments/").json()["results"][0]["status"] == "unknown",
        "the lost answer is found",
    )
    amounts = [(effect["kind"], effect["amount"]) for effect in stack.effects()]
    assert amounts == [("charge", 1999), ("charge", 1999)]


@pytest.mark.parametrize("block", blocks(run="checkout"), ids=lambda block: block.label)
def test_commands_run_at_the_root(block: Block, stack_database_url: str, redis_url: str) -> None:
    for line in block.body.splitlines():
        words = line.split()
        assert words[0] == "./manage.py"
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": stack_database_url, "REDIS_URL": redis_url, "DEBUG": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
