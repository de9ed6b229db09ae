"""Django's PostgreSQL, with an end to waiting for an answer.

# Note [Silence]
The server ends a statement in time, as long as it runs. One that is frozen, or whose disk hangs, ends nothing, and its
machine goes on acknowledging packets, so that no keepalive notices: each thread of a web process would wait for as long
as that lasts, and its probe of life too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, OperationalError
from psycopg.pq import TransactionStatus


class DatabaseWrapper(base.DatabaseWrapper):
    """Reads one setting more: `ANSWER_WITHIN`, seconds that one statement may be waited for; 0: for ever."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection that is closed by the first statement that is not answered in time."""
        connection = super().get_new_connection(conn_params)
        if seconds := self.settings_dict.get("ANSWER_WITHIN"):
            connection.wait = partial(_wait, connection, connection.wait, seconds)
        return connection


def _wait(
    connection: "Connection[Any]",
    wait: Callable[..., Any],
    seconds: float,
    generator: Any,
    **options: Any,
) -> Any:
    try:
        return wait(generator, **{"timeout": seconds} | options)
    except OperationalError as error:
        if connection.pgconn.transaction_status != TransactionStatus.ACTIVE:
            raise
        # Whatever comes now belongs to a question that nobody asks any more.
        connection.pgconn.finish()
        raise OperationalError(f"the server has not answered within {seconds:g} s") from error
