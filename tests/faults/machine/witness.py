"""The database's own memory of every move, kept by triggers: it sees what no code path tells."""

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

_COLUMNS = {
    "idempotency_key": ("id", "state", "settled_by", "token"),
    "payments_payment": ("key_id", "status", "''", "status"),
    "payments_refund": ("key_id", "status", "''", "status"),
    "payments_payout": ("key_id", "status", "''", "status"),
}


@dataclass(frozen=True)
class Move:
    """One row went from one state to another, or to another owner."""

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


def moves(key_ids: Collection[uuid.UUID]) -> list[Move]:
    """Return every move of these keys so far, in order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tab, key_id, generation, old, new, by, extract(epoch FROM at)::float FROM machine_move "
            "WHERE key_id = ANY(%s) ORDER BY n",
            [list(key_ids)],
        )
        return [Move(*row) for row in cursor.fetchall()]


_TABLE = """
CREATE TABLE machine_move (n bigserial, at timestamptz DEFAULT clock_timestamp(), tab text, key_id uuid,
    generation int, old text, new text, by text);
CREATE INDEX ON machine_move (key_id)
"""


def _create() -> str:
    statements = [_TABLE]
    for table, (key, state, by, owner) in _COLUMNS.items():
        column_by = f"NEW.{by}" if by != "''" else by
        statements.append(
            f"""
            CREATE FUNCTION machine_see_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF TG_OP = 'INSERT' OR (OLD.{state}, OLD.{owner}) IS DISTINCT FROM (NEW.{state}, NEW.{owner}) THEN
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
