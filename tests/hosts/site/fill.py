"""Print rows as this release writes them, as SQL: what the next releases' migrations are tried on.

SITE_DATABASES names an empty database. Kept are the files of each release in `tests/packaging/rows`.

python -m tests.hosts.site.fill > tests/packaging/rows/0.1.sql
"""

import uuid
from typing import Any

import django
from django.core.management import call_command
from django.db import connection

MEMBER = uuid.UUID("0198c0de-0000-7000-8000-000000000001")
TABLES = (
    *("site_member", "idempotency_key", "idempotency_step"),
    *("idempotency_sender", "idempotency_operation", "idempotency_event"),
)


def main() -> None:
    django.setup()
    call_command("migrate", verbosity=0)
    from idempotency.exceptions import CallFailed, CallUnknown
    from tests.hosts.site.drive import post
    from tests.hosts.site.models import Member
    from tests.support.host import other_side

    member = Member.objects.create_superuser("alice", id=MEMBER, password="secret")
    post(member, "/local/", "completed")
    post(member, "/charge/", "charged")
    other_side.script.append(CallFailed("no"))
    post(member, "/charge/", "released")
    other_side.script.append(CallUnknown("lost"))
    post(member, "/charge/", "unknown")
    post(member, "/letters/", "waiting")
    with connection.cursor() as cursor:
        # Which machine it was is nobody's business.
        cursor.execute(
            "UPDATE idempotency_sender SET host = 'a-host', boot_id = 'a-boot', pid_namespace = 'n'"
        )
    for table in TABLES:
        for line in rows(table):
            print(line)


def rows(table: str) -> list[str]:
    """Return an INSERT for each row, with every column named."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        names = ", ".join(column.name for column in cursor.description)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return [
            f"INSERT INTO {table} ({names}) VALUES ({', '.join(map(literal, row))});"
            for row in found
        ]


def literal(value: Any) -> str:
    from psycopg import sql

    return sql.Literal(value).as_string(connection.connection)


if __name__ == "__main__":
    main()
