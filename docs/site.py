"""Write the documentation as HTML to a folder: `make docs`, or `python -m docs.site [folder]`. Needs no network.

Every Markdown page becomes a page at the same place, links between pages follow, and what they lead to outside of the
documentation is copied beside it.
"""

import html
import re
import sys
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LINK = re.compile(r"(?P<page>[^#?]+)\.md(?P<anchor>#.*)?$")

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
nav { border-bottom: 1px solid #8886; padding-bottom: .5rem; margin-bottom: 1.5rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
pre { overflow-x: auto; padding: .75rem 1rem; background: #8881; border-radius: .4rem; line-height: 1.4; }
code { font-size: .92em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #8884; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2.5rem; }
"""

NAVIGATION = (
    ("Start", "docs/index.md"),
    ("README", "README.md"),
    ("Quickstart", "docs/quickstart.md"),
    ("Life of a key", "docs/lifecycle.md"),
    ("Consumers", "docs/consumers.md"),
    ("Staff", "docs/staff/index.md"),
    ("Engineers", "docs/engineers.md"),
    ("Runbook", "docs/runbook.md"),
    ("Guarantees", "docs/guarantees.md"),
    ("Settings", "docs/reference/settings.md"),
    ("Problems", "docs/reference/problems.md"),
    ("Glossary", "docs/glossary.md"),
    ("Decisions", "docs/adr/index.md"),
)


def main(folder: Path) -> int:
    """Write every page; say how many."""
    pages = sources()
    for page in pages:
        target = folder / page.relative_to(ROOT).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(rendered(page), encoding="utf-8")
    for picture in (DOCS / "img").glob("*"):
        target = folder / picture.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(picture.read_bytes())
    (folder / "index.html").write_text(
        '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">', "utf-8"
    )
    sys.stdout.write(f"{len(pages)} pages in {folder}\n")
    return 0


def sources() -> list[Path]:
    """Return every page that there is."""
    return [*(ROOT / name for name in BESIDE), *sorted(DOCS.rglob("*.md"))]


def rendered(page: Path) -> str:
    """Return a page as HTML."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = markdown.parse(page.read_text(encoding="utf-8"))
    seen: dict[str, int] = {}
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(following.content, seen))
    for token in tokens:
        _relink(token)
    title = next((one.content for one in tokens if one.type == "inline"), page.stem)
    body = markdown.renderer.render(tokens, markdown.options, {})
    body = body.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
    up = "../" * (len(page.relative_to(ROOT).parts) - 1)
    links = " ".join(
        f'<a href="{up}{_html(target)}">{html.escape(name)}</a>' for name, target in NAVIGATION
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><nav>{links}</nav>\n{body}</body></html>\n"
    )


def anchor(heading: str, seen: dict[str, int]) -> str:
    """Return a heading's anchor, as the usual hosts of Markdown make it."""
    name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
    number = seen.get(name, 0)
    seen[name] = number + 1
    return f"{name}-{number}" if number else name


def _relink(token: Token) -> None:
    for child in token.children or ():
        target = child.attrGet("href")
        if isinstance(target, str) and "://" not in target:
            child.attrSet("href", _html(target))


def _html(target: str) -> str:
    found = _LINK.fullmatch(target)
    return f"{found['page']}.html{found['anchor'] or ''}" if found else target


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
