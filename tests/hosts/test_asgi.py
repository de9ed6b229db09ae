"""DRF's synchronous views behind an async server."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.db import connection

from tests.hosts.site.processes import migrate, served
from tests.support.databases import empty_database

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
LOGIN = ("alice", "secret")
WAIT_SECONDS = 20.0


@pytest.fixture(scope="module")
def database() -> Iterator[dict[str, Any]]:
    with empty_database() as database:
        migrate({"default": database})
        yield database


@pytest.fixture(scope="module")
def address(database: dict[str, Any]) -> Iterator[str]:
    with served({"default": database}) as address:
        yield address


def post(address: str, path: str, key: str) -> requests.Response:
    headers = {"Idempotency-Key": key}
    return requests.post(address + path, json={}, auth=LOGIN, headers=headers, timeout=30)


def test_r16_a_replay_behind_an_async_server(address: str) -> None:
    first, again = (post(address, "/charge/", "k1") for _ in range(2))
    assert first.status_code == 201
    assert again.content == first.content
    assert again.headers["Idempotent-Replayed"] == "true"


def test_r18_a_client_that_leaves_cancels_neither_work_nor_settlement(
    address: str, database: dict[str, Any]
) -> None:
    leave(address, "/slow/", "left", seen=lambda: claims(database) == 1)
    end = time.monotonic() + WAIT_SECONDS
    while (again := post(address, "/slow/", "left")).status_code == 409:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert again.status_code == 201
    assert again.headers["Idempotent-Replayed"] == "true"


def leave(address: str, path: str, key: str, *, seen: Callable[[], bool]) -> None:
    """Send a request, see that it runs, and go without hearing its answer."""
    at = urlsplit(address)
    login = requests.Request("POST", address, auth=LOGIN).prepare().headers["Authorization"]
    with socket.create_connection((str(at.hostname), at.port or 80), 10) as caller:
        caller.sendall(
            f"POST {path} HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: {login}\r\n"
            f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\n\r\n{}".encode()
        )
        end = time.monotonic() + WAIT_SECONDS
        while not seen():
            assert time.monotonic() < end, "the request was never claimed"


def claims(database: dict[str, Any]) -> int:
    """Count the claims that are not committed yet, by the lock that each holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_locks.database = pg_database.oid "
            "WHERE locktype = 'advisory' AND datname = %s",
            [database["NAME"]],
        )
        return int(cursor.fetchone()[0])
