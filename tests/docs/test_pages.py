"""The pages: what is generated is current, links lead somewhere, and every sentence has its line."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import site
from docs.reference import filled
from docs.source import writes_in
from idempotency import conf
from idempotency.admin.situations import Situation
from payments import conf as payments_conf
from tests.docs.blocks import ROOT, pages, prose

PAGES = pages()
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    seen: dict[str, int] = {}
    return {site.anchor(h, seen) for h in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_what_is_generated_is_current(page: Path) -> None:
    """To write it anew: `make docs`."""
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert found.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_named_tests_and_files_exist(page: Path) -> None:
    for name in re.findall(
        r"`((?:tests|idempotency|payments|project|benchmarks)/[^`\s]*)`", prose(page)
    ):
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        if test:
            assert f"def {test}(" in (ROOT / path).read_text(), name


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_a_sentence_has_a_line_of_its_own(page: Path) -> None:
    hand_written = re.sub(r"<!-- generated.*?<!-- end -->", "", prose(page), flags=re.DOTALL)
    for line in hand_written.splitlines():
        if not line.startswith(("|", "- ", "#", "*", "(")) and not re.match(r"\d+\. ", line):
            # Short answers to a question may stand together in one paragraph.
            assert len(re.findall(r"[a-z`)][.?] [A-Z`]", line)) <= 2, line


def test_every_page_can_be_reached_from_the_readme() -> None:
    """A new page is linked from `docs/index.md`, or from the page that leads to it."""
    reached, waiting = set(), {ROOT / "README.md"}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        found = {(page.parent / t.partition("#")[0]).resolve() for t in LINK.findall(prose(page))}
        waiting |= {one for one in found if one.suffix == ".md" and one.exists()} - reached
    assert set(PAGES) <= reached


def test_each_situation_has_its_page_and_its_place_in_the_runbook() -> None:
    places = anchors(ROOT / "docs" / "runbook.md")
    for one in Situation:
        assert (ROOT / "docs" / "staff" / f"{one.value}.md").exists()
        assert one.value in places


def test_every_variable_of_the_environment_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert set(_variables()) <= set(re.findall(r"`([A-Z_]{4,})`", readme))


def _variables() -> Iterator[str]:
    reader = re.compile(
        r"environment\.(?:text|words|flag|integer|port)\(\s*\"([A-Z_]+)\"|environment\.\w+\('([A-Z_]+)'"
    )
    for path in (ROOT / "project").rglob("*.py"):
        for double, single in reader.findall(path.read_text()):
            yield double or single


def test_every_setting_named_in_a_page_exists() -> None:
    known = {one.name for one in conf.SETTINGS} | {one.name for one in payments_conf.SETTINGS}
    for page in PAGES:
        for name in re.findall(r"(?:IDEMPOTENCY|PAYMENTS)\[\"([A-Z_]+)\"\]", page.read_text()):
            assert name in known, f"{label(page)}: {name}"


def test_every_write_of_a_state_is_in_the_table() -> None:
    table = (ROOT / "docs" / "reference" / "transitions.md").read_text()
    ledger = ROOT / "idempotency" / "ledger"
    writes = {write.where for path in ledger.glob("*.py") for write in writes_in(path)}
    # Claiming again is part of `acquire.acquire`; that staff begin work again is said in the text.
    known = {"acquire._CLAIM_AGAIN", "acquire._NEW_GENERATION", "due.begin_again"}
    assert {name for name in writes - known if f"`{name}`" not in table} == set()


def test_the_site_is_written_from_every_page(tmp_path: Path) -> None:
    assert site.main(tmp_path) == 0
    for page in PAGES:
        text = (tmp_path / page.relative_to(ROOT).with_suffix(".html")).read_text()
        assert "<h1" in text
        for target in re.findall(r'href="([^"#:]+\.html)', text):
            assert ((tmp_path / page.relative_to(ROOT)).parent / target).resolve().exists(), target


def test_every_reason_for_a_person_is_in_the_runbook() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text()
    said = re.compile(
        r"(?:needs_person=f?|why = )\"([^\"{]+)|return \(?\s*\"([^\"]+)\"\s*\)?\n", re.DOTALL
    )
    files = [
        ROOT / "idempotency" / "execution.py",
        *(ROOT / "idempotency" / "reconciliation").glob("*.py"),
        *(ROOT / "idempotency" / "operations").glob("runner.py"),
    ]
    for path in files:
        for given, returned in said.findall(path.read_text()):
            # Enough to recognise it: the first words.
            reason = " ".join((given or returned).split()[:3]).rstrip(".:,")
            if given or path.name == "execution.py":
                assert reason in runbook, reason
