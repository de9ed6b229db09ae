"""Fill in what the documentation takes from the code: `make docs`, or `python -m docs.reference`.

A page marks the places:

    <!-- generated: settings -->
    … is written here …
    <!-- end -->

A test holds that every page is what this would write, so a page and the code cannot drift apart.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import django

DOCS = Path(__file__).resolve().parent
_PLACE = re.compile(r"<!-- generated: (?P<name>[^>]+?) -->\n.*?<!-- end -->", re.DOTALL)


def main() -> int:
    """Write every page anew; say which changed."""
    django.setup()
    for page in sorted(DOCS.rglob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = filled(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{page.relative_to(DOCS.parent)} is new\n")
    return 0


def filled(text: str) -> str:
    """Return the page with each marked place written anew."""
    return _PLACE.sub(_write, text)


def _write(place: re.Match[str]) -> str:
    name, _, argument = place["name"].partition(" ")
    makers = _makers()
    if name not in makers:
        raise SystemExit(
            f"There is nothing called {name!r} to generate; known: {', '.join(makers)}"
        )
    made = makers[name](argument) if argument else makers[name]()
    return f"<!-- generated: {place['name']} -->\n\n{made.strip()}\n\n<!-- end -->"


def _makers() -> dict[str, Callable[..., str]]:
    # Imported late: they read models and registries.
    from docs import made

    return made.MAKERS


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    os.environ.setdefault("PROCESS_ROLE", "command")
    sys.exit(main())
