"""Time and tables of the test database: the ledger's clock is the database's, so time is moved in the rows."""

from django.db import ProgrammingError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper

from idempotency.conf import conf
from idempotency.exceptions import Misuse

_COLUMNS = """
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name LIKE 'idempotency\\_%%'
      AND table_name <> 'idempotency_event' AND data_type = 'timestamp with time zone'
    ORDER BY table_name, ordinal_position
"""


def pass_time(seconds: float) -> None:
    """Let time pass for the ledger: all that was written is so much older, every date to come so much nearer.

    The history is left as it is: it is append-only.
    """
    tables: dict[str, list[str]] = {}
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(_COLUMNS)
        for table, column in cursor.fetchall():
            tables.setdefault(table, []).append(column)
        for table, columns in tables.items():
            moved = ", ".join(f"{name} = {name} - make_interval(secs => %(s)s)" for name in columns)
            cursor.execute(f"UPDATE {table} SET {moved}", {"s": seconds})


def has_the_ledger(using: str) -> bool:
    """Say whether a database has the ledger's tables; without a router each has."""
    return bool(router.allow_migrate(using, "idempotency"))


def allow_truncation(connection: BaseDatabaseWrapper | None = None) -> None:
    """Let a test database be emptied between tests; anywhere else the ledger's history may not be.

    Raises: Misuse, where the database was made without migrations.
    """
    try:
        with (connection or connections[conf.DATABASE]).cursor() as cursor:
            cursor.execute(
                "ALTER TABLE idempotency_event DISABLE TRIGGER idempotency_event_no_truncate"
            )
    except ProgrammingError as error:
        raise Misuse(
            "The test database was made without migrations (--nomigrations, MIGRATION_MODULES, TEST['MIGRATE']): the "
            "ledger's function and triggers are missing, and no key can be claimed."
        ) from error
