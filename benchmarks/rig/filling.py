"""Fill a ledger with keys of a past month, and let days go by in it."""

import hashlib
from typing import Any

import psycopg

from benchmarks.rig.subject import Subject

_DAY = 86_400
TTL = {"key_ttl": 30 * _DAY, "result_ttl": 3 * _DAY}
_HOURS = 24

# All but the primary key's are made after the rows: several times faster.
_INDEXES = """
SELECT format('ALTER TABLE idempotency_key DROP CONSTRAINT %I', conname),
    format('ALTER TABLE idempotency_key ADD CONSTRAINT %I %s', conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = 'idempotency_key'::regclass AND contype = 'u'
UNION ALL
SELECT format('DROP INDEX %I', indexname), indexdef FROM pg_indexes WHERE tablename = 'idempotency_key'
AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE conrelid = 'idempotency_key'::regclass)
"""
_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = 'idempotency_key'::regclass AND attnum > 0 AND NOT attisdropped
"""


def key(number: int) -> str:
    """Return the key of a filled row; 0 is the newest."""
    return hashlib.md5(str(number).encode()).hexdigest()


def fill(connection: psycopg.Connection, rows: int) -> None:
    """Add so many settled keys, evenly over 30 days, made like a key that was really answered.

    The newest tenth still has its answers.
    """
    connection.execute("SET maintenance_work_mem = '1GB'")
    _insert(connection, rows, "n", f"n::float8 / {max(rows, 1)} * interval '{30 * _DAY} seconds'")
    connection.execute("VACUUM (ANALYZE) idempotency_key")
    connection.execute("CHECKPOINT")


def expire(connection: psycopg.Connection, count: int) -> None:
    """Add keys that may be forgotten now."""
    _insert(connection, count, "'old-' || gen_random_uuid()", "interval '31 days'", note="old")


def day(connection: psycopg.Connection, rows: int, sweeper: Subject) -> dict[str, Any]:
    """Let a day go by: each hour its share of new keys, and what is a day older is forgotten; return what it left.

    Autovacuum has its defaults but looks every second, because the day takes a minute.
    """
    connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
    connection.execute("SELECT pg_reload_conf()")
    before, share = size(connection), rows // 30 // _HOURS
    removed = answers = 0
    for hour in range(1, _HOURS + 1):
        for _ in range(max(1, share // 500)):
            # As a local handler's request writes it: once, with its answer.
            _insert(connection, 500, "gen_random_uuid()", "interval '0'", note="day")
        ttl = {name: seconds - hour * 3600 for name, seconds in TTL.items()}
        done = sweeper.do("purge", seconds=60, **ttl)
        removed, answers = removed + done["keys"], answers + done["answers"]
    return {
        "before": before,
        "after": size(connection),
        "inserted": max(1, share // 500) * 500 * _HOURS,
        "keys": removed,
        "answers": answers,
    }


def size(connection: psycopg.Connection) -> int:
    """Return the bytes of the table and its indexes."""
    found = connection.execute("SELECT pg_total_relation_size('idempotency_key')").fetchone()
    assert found is not None
    return int(found[0])


def _insert(
    connection: psycopg.Connection, rows: int, number: str, age: str, *, note: str = ""
) -> None:
    if not rows:
        return
    bulk = not note
    new = {
        "id": f"uuidv7(-({age}))",
        "key": f"md5(({number})::text)",
        "settled_at": f"now() - ({age})",
        "created_at": f"now() - ({age})",
        "claimed_at": f"now() - ({age})",
        "body": f"CASE WHEN {age} < interval '3 days' THEN body END",
        "note": f"CASE WHEN {age} < interval '3 days' THEN '{note}' ELSE 'expired' END",
    }
    columns = [name for (name,) in connection.execute(_COLUMNS)]
    chosen = ", ".join(new.get(name, name) for name in columns)
    with connection.transaction():
        indexes = connection.execute(_INDEXES).fetchall() if bulk else []
        for drop, _ in indexes:
            connection.execute(drop)
        connection.execute(
            f"INSERT INTO idempotency_key ({', '.join(columns)}) SELECT {chosen} FROM "
            "(SELECT * FROM idempotency_key WHERE note = '' ORDER BY id DESC LIMIT 1) AS one, "
            f"generate_series(0, {rows - 1}) AS n"
        )
        for _, make in indexes:
            connection.execute(make)
