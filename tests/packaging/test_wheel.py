"""The wheel holds the reusable app, whole, and nothing else."""

import re
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.packaging.bareproject import ROOT

pytestmark = pytest.mark.slow
GENERATED = {"__pycache__"}


@pytest.fixture
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_holds_every_file_of_the_app_and_no_other(names: set[str]) -> None:
    app = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "idempotency").rglob("*")
        if path.is_file() and not GENERATED.intersection(path.parts)
    }
    assert {name for name in names if ".dist-info/" not in name} == app
    assert "idempotency/py.typed" in names
    assert any(name.startswith("idempotency/templates/") for name in names)
    assert any(name.startswith("idempotency/static/") for name in names)
    assert any(name.startswith("idempotency/migrations/0") for name in names)


def test_the_base_installation_is_django_drf_and_psycopg(metadata: Message) -> None:
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(re.split(r"[<>=]", line)[0].lower() for line in required) == [
        "django",
        "djangorestframework",
        "psycopg",
    ]
