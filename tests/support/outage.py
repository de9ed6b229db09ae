"""A database that is gone for a while, or takes no writes, and comes back."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection

from tests.support.databases import login


class Outage:
    """Lets nobody in to the test's database, and throws out who is in, until it is told to end."""

    def begin(self) -> None:
        with psycopg.connect(**login("postgres"), autocommit=True) as other:
            other.execute(f'ALTER DATABASE "{_name()}" ALLOW_CONNECTIONS false')
            inside = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
            while rows := other.execute(inside, [_name()]).fetchall():
                for (pid,) in rows:
                    other.execute("SELECT pg_terminate_backend(%s)", [pid])

    def end(self) -> None:
        with psycopg.connect(**login("postgres"), autocommit=True) as other:
            other.execute(f'ALTER DATABASE "{_name()}" ALLOW_CONNECTIONS true')

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let it take no writes from this thread, as a standby would."""
        read_only = f'ALTER DATABASE "{_name()}" SET default_transaction_read_only = {{}}'
        with psycopg.connect(**login("postgres"), autocommit=True) as other:
            other.execute(read_only.format("on"))
            connection.close()
            try:
                yield
            finally:
                other.execute(read_only.format("off"))
                connection.close()


def _name() -> str:
    return str(connection.settings_dict["NAME"])
