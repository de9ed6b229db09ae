"""The documentation's shell, its clients and its commands, against real processes."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CHARGES = {
    "README.md": 1,
    "docs/consumers.md": 4,
    "docs/quickstart.md": 2,
    "docs/howto/gateway-events.md": 1,
    "docs/webhooks.md": 0,
}
"""How often each page's commands move money, however often they ask."""


@pytest.fixture(scope="module")
def kept_stack(made_stack: Stack) -> Stack:
    made_stack.environment |= {"IDEMPOTENCY_WAKE_EVERY": "1", "IDEMPOTENCY_RECONCILE_EVERY": "1"}
    made_stack.start_simulator(webhooks=True)
    made_stack.start("web", "worker", "beat")
    return made_stack


def test_pages_do_what_they_say(shared_stack: Stack, tmp_path: Path) -> None:
    for page, charges in CHARGES.items():
        before = len(shared_stack.effects())
        for block in of_page(page):
            said = run(block, shared_stack, tmp_path)
            for output in blocks(output=block.attributes.get("name", "-")):
                assert_says(said, output)
        shared_stack.wait_until(lambda: all_settled(shared_stack), "what was lost is found")
        assert len(shared_stack.effects()) - before == charges, page


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node is installed")
def test_the_recipe_for_node_pays_once(shared_stack: Stack, tmp_path: Path) -> None:
    recipe, follow = of_page("docs/consumers.md", "js")
    lost = {"path": "/v1/payment_intents", "kind": "refuse_503", "times": 3}
    shared_stack.simulate("POST", "/_sim/faults", lost)
    assert run(recipe, shared_stack, tmp_path) == "succeeded\n"
    assert len(shared_stack.effects()) == 1

    both = replace(follow, body=recipe.body.replace("order-23", "order-24") + follow.body)
    assert run(both, shared_stack, tmp_path) == "succeeded\nsucceeded\n"
    assert sorted(effect["kind"] for effect in shared_stack.effects()) == [
        "charge",
        "charge",
        "refund",
    ]


def test_controls_of_the_simulator_are_as_shown(shared_stack: Stack, tmp_path: Path) -> None:
    for block in of_page("docs/reference/simulator.md"):
        run(block, shared_stack, tmp_path)
    assert len(shared_stack.simulate("GET", "/_sim/faults")) == 1


def test_no_page_is_forgotten() -> None:
    pages = {block.page for block in blocks(run="stack")}
    assert pages == {*CHARGES, "docs/reference/simulator.md"}


def of_page(page: str, *languages: str) -> list[Block]:
    found = [block for block in blocks(run="stack") if block.page == page]
    return [block for block in found if block.language in (languages or ("sh", "python"))]


def all_settled(stack: Stack) -> bool:
    payments = stack.get("/api/payments/").json()["results"]
    return all(payment["status"] in ("succeeded", "declined") for payment in payments)


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


# Line after line as a shell would run them, each with its own words; Django is imported once.
ALL_LINES = """
import runpy, sys
for line in sys.stdin.read().splitlines():
    sys.argv = line.split()
    assert sys.argv[0] == "./manage.py", line
    print(f"$ {line}", file=sys.stderr)
    try:
        runpy.run_path("manage.py", run_name="__main__")
    except SystemExit as end:
        assert not end.code, line
"""


def test_commands_run_at_the_root(stack_database_url: str, redis_url: str) -> None:
    lines = [block.body for block in blocks(run="checkout")]
    assert len(lines) > 2
    done = subprocess.run(
        [sys.executable, "-c", ALL_LINES],
        input="".join(lines),
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": stack_database_url, "REDIS_URL": redis_url, "DEBUG": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
