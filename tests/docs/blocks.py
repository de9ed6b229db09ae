"""The documentation as data: its pages, and the fenced blocks in them.

A block of Python or shell says in its info string how it is held true:

    title="shop/views.py"   part of the example project, which `test_shop` puts together and runs
    run="test"              run by `test_python_blocks`, within Django and with the database
    run="stack"             run by `test_shell_blocks` against real processes
    run="checkout"          run by `test_shell_blocks` at the root of the repository
    held="tests/…"          needs what a test cannot have here; this test does what the block says
    output="name"           what the block of that name answered
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```\s*$",
    re.MULTILINE | re.DOTALL,
)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    attributes: dict[str, str]
    body: str

    @property
    def label(self) -> str:
        """Return where it is."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return every page of the documentation, the README first."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def blocks(**attributes: str) -> list[Block]:
    """Return the blocks that have these attributes, in the order of reading."""
    return [
        block
        for page in pages()
        for block in blocks_of(page)
        if attributes.items() <= block.attributes.items()
    ]


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        language, _, rest = found["info"].strip().partition(" ")
        yield Block(
            page=str(page.relative_to(ROOT)),
            line=text.count("\n", 0, found.start()) + 1,
            language=language,
            attributes=dict(_ATTRIBUTE.findall(rest)),
            body=found["body"],
        )


def prose(page: Path) -> str:
    """Return the page without its fenced blocks, as many lines as before."""
    text = page.read_text(encoding="utf-8")
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)
