"""A host with UUID users and tenants, under every way to reach its database. The assertions are in `site.drive`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.site.pgbouncer import PgBouncer, installed
from tests.hosts.site.processes import drive
from tests.support.databases import empty_database

pytestmark = pytest.mark.slow


@pytest.fixture
def database() -> Iterator[dict[str, Any]]:
    with empty_database() as database:
        yield database


def test_r8_reads_may_be_routed_elsewhere(database: dict[str, Any]) -> None:
    """The replica refuses every write, and shows what a transaction has not committed to nobody."""
    read_only = {"options": "-c default_transaction_read_only=on"}
    drive({"default": database, "replica": {**database, "OPTIONS": read_only}}, SITE_ROUTER="1")


def test_r8_psycopgs_pool_smaller_than_the_crowd(database: dict[str, Any]) -> None:
    drive({"default": {**database, "OPTIONS": {"pool": {"min_size": 1, "max_size": 4}}}})


def test_r8_persistent_connections_that_prepare_their_statements(database: dict[str, Any]) -> None:
    options = {"server_side_binding": True, "prepare_threshold": 2}
    drive({"default": {**database, "CONN_MAX_AGE": 60, "OPTIONS": options}})


def test_a_host_without_time_zones(database: dict[str, Any]) -> None:
    drive({"default": database}, SITE_CLOCKS="Asia/Kathmandu")


@pytest.mark.skipif(not installed(), reason="pgbouncer is not installed")
def test_r8_pgbouncer_in_transaction_mode(database: dict[str, Any], tmp_path: Path) -> None:
    """Advisory locks and set_config() are the transaction's, and nothing is prepared."""
    with PgBouncer(home=tmp_path, database=database) as through:
        drive({"default": through})
