"""Each wrong setting is reported by its number, once."""

import sys
from types import ModuleType
from typing import Any

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.models import Model
from django.test import override_settings

from idempotency.checks import check_settings
from tests.unit.checks.support import ids

POSTGRESQL = {"ENGINE": "django.db.backends.postgresql"}
LONG = "s" * 16


def settings_ids(**values: Any) -> list[str]:
    with override_settings(IDEMPOTENCY=values):
        return ids(check_settings())


def test_the_defaults_are_in_order() -> None:
    assert settings_ids() == []
    assert settings_ids(FINGERPRINT_SECRETS={"1": LONG}, FINGERPRINT_HEADERS=["X-Currency"]) == []


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"LEASE": "45"}, ["E002"]),
        ({"LEASE": -1, "MISMATCH_STATUS": 200}, ["E002", "E002"]),
        ({"SCOPE": "no.such.scope"}, ["E002"]),
        ({"FINGERPRINT_SECRETS": {}}, ["E002"]),
        ({"DATABASE": None}, ["E002"]),
        ({"LEESE": 45}, ["E003"]),
        ({"lease": 45}, ["E003"]),
        ({"LEASE": 12, "OPERATION_TIME_LIMIT": 1}, ["E004"]),
        ({"RESULT_TTL": 2_592_001}, ["E005"]),
        ({"RETRY_BASE": 6}, ["E006"]),
        ({"OPERATION_TIME_LIMIT": 45}, ["E007"]),
        ({"WAIT": 12}, ["E008"]),
        ({"STORED_HEADERS": ["Set-Cookie", "X-RateLimit-Limit", "ETag"]}, ["E009", "E009"]),
        ({"DATABASE": "elsewhere"}, ["E010"]),
        ({"PROBLEMS": ["no.such.mapping"]}, ["E013"]),
        ({"PROBLEMS": ["tests.unit.checks.test_settings.LONG"]}, ["E013"]),
        ({"PROBLEMS": ["tests.unit.checks.test_settings.HALF_A_PROBLEM"]}, ["E013"]),
        ({"FINGERPRINT_SECRETS": {"1": "short"}}, ["W001"]),
        ({"FINGERPRINT_HEADERS": ["Authorization"]}, ["W002"]),
        ({"RESULT_TTL": 3600, "KEY_TTL": 3600}, ["W003"]),
        ({"PROBLEM_BASE": "/nowhere/"}, ["W004"]),
        ({"PROBLEM_BASE": "/problems"}, ["W004"]),
        ({"PROBLEM_BASE": "https://docs.example/"}, []),
        ({"RESULT_TTL": 2_592_000}, []),
    ],
)
def test_a_wrong_setting_is_reported_once(values: dict[str, Any], found: list[str]) -> None:
    assert settings_ids(**values) == found


HALF_A_PROBLEM = {"out-of-stock": {"status": 409}}


@override_settings(FORCE_SCRIPT_NAME="/shop/")
def test_the_pages_are_looked_for_below_the_hosts_prefix() -> None:
    """A type that leads to `/problems/` would leave the host."""
    assert settings_ids() == ["W004"]
    assert settings_ids(PROBLEM_BASE="/shop/problems/") == []


@override_settings(TEMPLATES=[])
def test_pages_without_a_template_are_reported() -> None:
    assert settings_ids() == ["W006"]
    assert settings_ids(PROBLEM_BASE="https://docs.example/") == []


def test_a_misspelt_setting_is_answered_with_the_right_one() -> None:
    with override_settings(IDEMPOTENCY={"LEESE": 45}):
        (message,) = check_settings()
    assert message.hint == "Did you mean LEASE?"


@override_settings(IDEMPOTENCY=["LEASE"])
def test_what_is_not_a_dict_is_reported() -> None:
    assert ids(check_settings()) == ["E001"]


class AllThere:
    def db_for_write(self, model: type, **_: Any) -> str:
        return "ledger"


class OnlyTheLedgerThere:
    def db_for_write(self, model: type[Model], **_: Any) -> str:
        return "ledger" if model._meta.app_label == "idempotency" else "default"


class OfTheirs(ModuleType):
    """A database engine for PostgreSQL that is not called so, as that of django-postgres-extra."""

    DatabaseWrapper = DatabaseWrapper


@pytest.mark.parametrize(
    ("database", "found"),
    [
        ({"ENGINE": "django.db.backends.sqlite3"}, ["E011"]),
        ({"ENGINE": "django.db.backends.mysql"}, ["E011"]),
        ({"ENGINE": "django.contrib.gis.db.backends.postgis"}, []),
        ({"ENGINE": "django_prometheus.db.backends.postgresql"}, []),
        ({"ENGINE": "theirs.backend"}, []),
        ({"ENGINE": "theirs.nowhere"}, ["E011"]),
        (POSTGRESQL | {"AUTOCOMMIT": False}, ["E012"]),
    ],
)
def test_the_ledgers_database_is_a_postgresql_that_it_may_commit(
    database: dict[str, Any], found: list[str], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setitem(sys.modules, "theirs.backend.base", OfTheirs("theirs.backend.base"))
    monkeypatch.setitem(settings.DATABASES, "ledger", database)
    settings.DATABASE_ROUTERS = [AllThere()]
    assert settings_ids(DATABASE="ledger") == found


@pytest.mark.parametrize("routers", [[], [OnlyTheLedgerThere()]])
def test_a_ledger_apart_from_every_row_that_should_commit_with_it_is_reported(
    routers: list[Any], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setitem(settings.DATABASES, "ledger", POSTGRESQL)
    settings.DATABASE_ROUTERS = routers
    assert settings_ids(DATABASE="ledger") == ["W005"]
