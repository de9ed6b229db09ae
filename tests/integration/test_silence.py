"""A PostgreSQL that is frozen, as when its disk hangs, and whose machine still acknowledges packets."""

import os
import signal
from collections.abc import Iterator

import pytest
from django.db import OperationalError, connection

from tests.support.servers import servers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(servers.postgres is None, reason="a server of somebody else's is spared"),
]


@pytest.fixture
def frozen() -> Iterator[int]:
    """Freeze the server's process that answers this thread, whose patience is short."""
    connection.close()
    connection.settings_dict["ANSWER_WITHIN"] = 0.5
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGCONT)
    connection.settings_dict["ANSWER_WITHIN"] = 0
    connection.close()


def test_r26_it_is_left_after_a_while(frozen: int) -> None:
    with pytest.raises(OperationalError, match=r"has not answered within 0\.5 s"):
        connection.cursor().execute("SELECT 1")
    connection.close_if_unusable_or_obsolete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() != (frozen,)


def test_r26_an_error_of_the_server_closes_nothing() -> None:
    connection.close()
    connection.settings_dict["ANSWER_WITHIN"] = 5
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 50")
            with pytest.raises(OperationalError, match="statement timeout"):
                cursor.execute("SELECT pg_sleep(5)")
            cursor.execute("SELECT 1")
    finally:
        connection.settings_dict["ANSWER_WITHIN"] = 0
        connection.close()
