"""One wheel, built once; one stranger's project with a database of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.bareproject import Bare, build_wheel
from tests.support.databases import empty_database


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def database() -> Iterator[dict[str, object]]:
    with empty_database() as database:
        yield database


@pytest.fixture(scope="module")
def bare(
    wheel: Path, database: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Bare:
    return Bare(home=tmp_path_factory.mktemp("bare"), wheel=wheel, database=database)
