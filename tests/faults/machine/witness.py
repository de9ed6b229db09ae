"""The database's own memory of every move, kept by triggers: it sees what no code path tells."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

_COLUMNS = {
    "idempotency_key": ("id", "state", "settled_by"),
    "payments_payment": ("key_id", "status", "''"),
    "payments_refund": ("key_id", "status", "''"),
    "payments_payout": ("key_id", "status", "''"),
}


@dataclass(frozen=True)
class Move:
    """One row went from one state to another."""

    table: str
    key_id: uuid.UUID
    generation: int
    old: str
    new: str
    by: str
    at: float

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by else ""
        return f"{self.table} {self.old or '-'} → {self.new}{by}"


@contextmanager
def witness() -> Iterator[None]:
    """Write every move down for as long as the block lasts."""
    with connection.cursor() as cursor:
        cursor.execute(_drop())
        cursor.execute(_create())
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(_drop())


def moves() -> list[Move]:
    """Return every move so far, in order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tab, key_id, generation, old, new, by, extract(epoch FROM at)::float FROM machine_move ORDER BY n"
        )
        return [Move(*row) for row in cursor.fetchall()]


_TABLE = """
CREATE TABLE machine_move (n bigserial, at timestamptz DEFAULT clock_timestamp(), tab text, key_id uuid,
    generation int, old text, new text, by text)
"""


def _create() -> str:
    statements = [_TABLE]
    for table, (key, state, by) in _COLUMNS.items():
        column_by = f"NEW.{by}" if by != "''" else by
        statements.append(
            f"""
            CREATE FUNCTION machine_see_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF TG_OP = 'INSERT' OR OLD.{state} IS DISTINCT FROM NEW.{state} THEN
                    INSERT INTO machine_move (tab, key_id, generation, old, new, by) VALUES ('{table}',
                        NEW.{key}, NEW.generation, CASE WHEN TG_OP = 'UPDATE' THEN OLD.{state} ELSE '' END,
                        NEW.{state}, {column_by});
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER machine_see AFTER INSERT OR UPDATE ON {table}
                FOR EACH ROW EXECUTE FUNCTION machine_see_{table}()
            """
        )
    return ";".join(statements)


def _drop() -> str:
    functions = ";".join(f"DROP FUNCTION IF EXISTS machine_see_{t}() CASCADE" for t in _COLUMNS)
    return f"{functions}; DROP TABLE IF EXISTS machine_move"
