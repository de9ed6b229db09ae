"""Ways to the suite's own database beside Django's, and databases for hosts that run in processes of their own."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql


def login(dbname: str = "") -> dict[str, Any]:
    """Return psycopg's arguments for a connection of one's own to the test's database, or to another one beside it."""
    at = connection.settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    return {name: at[ours] for name, ours in names.items()} | {"dbname": dbname or at["NAME"]}


@contextmanager
def empty_database() -> Iterator[dict[str, Any]]:
    """Make an empty database on the suite's server; yields what Django's DATABASES says of it."""
    server = login("postgres")
    name = f"host_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(**server, autocommit=True) as beside:
        beside.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield {
            "ENGINE": "django.db.backends.postgresql",
            **{key.upper(): value for key, value in server.items() if key != "dbname"},
            "NAME": name,
        }
    finally:
        with psycopg.connect(**server, autocommit=True) as beside:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            beside.execute(drop)
