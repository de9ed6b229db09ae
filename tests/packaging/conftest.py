"""One wheel, built once; one stranger's project with a database of its own."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests.packaging.bareproject import Bare, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def database() -> Iterator[dict[str, object]]:
    """Return Django's settings of an empty database on the suite's server."""
    server = settings.DATABASES["default"]
    name = f"bare_{uuid.uuid4().hex[:12]}"
    login = {
        "host": server["HOST"],
        "port": server["PORT"],
        "user": server["USER"],
        "password": server["PASSWORD"],
    }
    with psycopg.connect(**login, dbname="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        **{key.upper(): value for key, value in login.items()},
    }
    with psycopg.connect(**login, dbname="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def bare(
    wheel: Path, database: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Bare:
    return Bare(home=tmp_path_factory.mktemp("bare"), wheel=wheel, database=database)
