"""Empty the tables after a test in milliseconds, where Django's flush makes every table anew and fills two again.

Only for pytest's own fixtures on the suite's own server: a test case of Django's is emptied as it is anywhere else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db import connections
from django.test import TransactionTestCase

# The lock waits for what a killed process has left to its backend, as a truncation does. As a replica the server runs
# no triggers, which guard rows from the app. What outgrew a few pages is truncated, or its dead rows would be read.
_EMPTY = """
DO $$
DECLARE
    kept CONSTANT text[] := ARRAY['django_migrations', 'django_content_type', 'auth_permission'];
    tables CONSTANT regclass[] := ARRAY(
        SELECT oid::regclass FROM pg_class
        WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND NOT relname = ANY (kept));
    each regclass;
BEGIN
    EXECUTE 'LOCK TABLE ' || array_to_string(tables, ', ') || ' IN ACCESS EXCLUSIVE MODE';
    SET LOCAL session_replication_role = replica;
    FOREACH each IN ARRAY tables LOOP
        IF pg_relation_size(each) > 4000000 THEN
            EXECUTE 'TRUNCATE ' || each || ' CASCADE';
        ELSE
            EXECUTE 'DELETE FROM ' || each;
        END IF;
    END LOOP;
END $$
"""


@contextmanager
def quickly() -> Iterator[None]:
    """Have the databases of pytest's tests emptied so inside."""
    flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]

    def teardown(case: Any) -> None:
        if not type(case).__module__.startswith("pytest_django."):
            flush(case)
            return
        for name in case._databases_names(include_mirrors=False):
            with connections[name].cursor() as cursor:
                cursor.execute(_EMPTY)

    with mock.patch.object(TransactionTestCase, "_fixture_teardown", teardown):
        yield
