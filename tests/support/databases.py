"""Databases beside the suite's own, for hosts that run in processes of their own."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from psycopg import sql


@contextmanager
def empty_database() -> Iterator[dict[str, Any]]:
    """Make an empty database on the suite's server; yields what Django's DATABASES says of it."""
    server = settings.DATABASES["default"]
    name = f"host_{uuid.uuid4().hex[:12]}"
    login: dict[str, Any] = {
        "host": server["HOST"],
        "port": server["PORT"],
        "user": server["USER"],
        "password": server["PASSWORD"],
    }
    with psycopg.connect(**login, dbname="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            **{key.upper(): value for key, value in login.items()},
        }
    finally:
        with psycopg.connect(**login, dbname="postgres", autocommit=True) as connection:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)
