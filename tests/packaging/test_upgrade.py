"""A database that an earlier release filled is brought up to date, under claims that go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import connection
from django.db.migrations import AddField, AlterModelOptions, CreateModel, RunSQL
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import SeparateDatabaseAndState
from django.db.migrations.operations.base import Operation

from tests.hosts.site.processes import drive, manage
from tests.support.databases import empty_database

ROWS = Path(__file__).parent / "rows"
FIRST_OF = {"0.1": "0001"}
"""The first migration with which each release's rows can be written; later ones are tried on top."""

AFTERWARDS = """
UPDATE idempotency_key SET settled_at = clock_timestamp() WHERE settled_at IS NOT NULL;
UPDATE idempotency_key SET due_at = clock_timestamp() WHERE due_at IS NOT NULL;
UPDATE idempotency_step SET resend_until = clock_timestamp() + interval '1 day';
SELECT setval(pg_get_serial_sequence('idempotency_step', 'id'), 1000);
SELECT setval(pg_get_serial_sequence('idempotency_sender', 'id'), 1000);
"""
"""The rows grow no older; and what they count on from."""


@pytest.fixture
def database() -> Iterator[dict[str, Any]]:
    with empty_database() as database:
        yield database


@pytest.mark.slow
@pytest.mark.parametrize("release", FIRST_OF)
def test_what_an_earlier_release_promised_holds_after_the_upgrade(
    database: dict[str, Any], release: str
) -> None:
    manage({"default": database}, "migrate", "-v", "0", "site")
    manage({"default": database}, "migrate", "-v", "0", "idempotency", FIRST_OF[release])
    with psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        user=database["USER"],
        password=database["PASSWORD"],
        dbname=database["NAME"],
    ) as filled:
        filled.execute((ROWS / f"{release}.sql").read_bytes())
        filled.execute(AFTERWARDS.encode())
    manage({"default": database}, "migrate", "-v", "0")
    drive({"default": database}, program="upgraded")


def test_every_release_has_its_rows() -> None:
    assert {path.stem for path in ROWS.glob("*.sql")} == set(FIRST_OF)


@pytest.mark.django_db
def test_no_later_migration_holds_up_claims_on_a_large_table() -> None:
    """No rewrite, no scan under a lock: indexes are built beside the work, columns come empty."""
    migrations = MigrationLoader(connection).disk_migrations
    for (app, name), migration in migrations.items():
        if app == "idempotency" and not name.startswith("0001"):
            for operation in migration.operations:
                assert is_quick(operation), f"{name}: {operation.describe()}"


def is_quick(operation: Operation) -> bool:
    match operation:
        case AlterModelOptions() | CreateModel() | AddIndexConcurrently():
            return True
        case RemoveIndexConcurrently():
            return True
        case AddField():
            return bool(operation.field.null or operation.field.has_db_default())
        case SeparateDatabaseAndState():
            return all(is_quick(inner) for inner in operation.database_operations)
        case RunSQL():
            sql = str(operation.sql).upper()
            scans = (" INDEX " in sql and "CONCURRENTLY" not in sql) or "ALTER TABLE" in sql
            return not scans and "UPDATE IDEMPOTENCY" not in sql
    return False
