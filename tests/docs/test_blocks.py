"""Every block of code in the documentation is run, and says how."""

import re
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.checks import Error

from idempotency.checks import check_settings
from tests.docs.blocks import ROOT, Block, blocks

RUN = {"test", "settings", "stack", "checkout"}
CODE = {"python", "js", "sh", "bash", "shell", "console"}


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.label)
def test_a_block_of_code_says_how_it_is_held_true(block: Block) -> None:
    attributes = block.attributes
    if block.language not in CODE:
        assert block.language in {"", "http", "json", "mermaid", "text"}, (
            "a language that nothing here runs"
        )
        return
    ways = attributes.keys() & {"run", "title", "held"}
    assert len(ways) == 1, "run, title or held: exactly one"
    if "held" in ways:
        assert (ROOT / attributes["held"]).is_file()
    elif "run" in ways:
        assert attributes["run"] in RUN


def test_a_block_that_is_held_elsewhere_calls_only_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks():
        if block.language == "sh":
            called = set(re.findall(r"^(?:[A-Z_]+=\S+ )*make ([a-z]+)", block.body, re.MULTILINE))
            assert called <= targets, block.label


def test_an_output_belongs_to_a_block() -> None:
    names = {block.attributes["name"] for block in blocks() if "name" in block.attributes}
    for block in blocks():
        assert block.attributes.get("output", "") in names | {""}, block.label


@pytest.mark.parametrize(
    "block",
    [block for block in blocks(run="test") if block.language == "python"],
    ids=lambda block: block.label,
)
@pytest.mark.filterwarnings("error")
def test_python_runs(block: Block, transactional_db: None, tmp_path: Path) -> None:
    code = compile(block.body, block.label, "exec")
    exec(code, {"__name__": f"docs_{tmp_path.name}"})


@pytest.mark.parametrize("block", blocks(run="settings"), ids=lambda block: block.label)
def test_settings_are_accepted(block: Block, settings: LazySettings) -> None:
    names: dict[str, object] = {}
    exec(compile(block.body, block.label, "exec"), names)
    assert isinstance(names["IDEMPOTENCY"], dict)
    settings.IDEMPOTENCY = names["IDEMPOTENCY"]
    assert [message for message in check_settings() if isinstance(message, Error)] == []
