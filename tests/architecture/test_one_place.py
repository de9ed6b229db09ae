"""A library that only one place may know is imported nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = {"opentelemetry": "idempotency/tracing.py", "stripe": "payments/gateway/stripe/"}
"""By library: the only folder or file that imports it."""


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module


@pytest.mark.parametrize(("library", "place"), PLACES.items())
def test_a_library_has_one_place(library: str, place: str) -> None:
    found = {
        str(path.relative_to(ROOT))
        for app in ("idempotency", "payments", "project")
        for path in (ROOT / app).rglob("*.py")
        if any(name.partition(".")[0] == library for name in imports(path))
    }
    assert found
    assert {name for name in found if not name.startswith(place)} == set()
