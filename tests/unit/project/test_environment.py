import pytest
from django.core.exceptions import ImproperlyConfigured

from project import environment

DEFAULTS: dict[str, object] = {
    "LEASE": 45.0,
    "ATTEMPTS": 3,
    "KEYED": True,
    "URL": "",
    "NAMES": ("a",),
}


@pytest.mark.parametrize(
    ("variable", "raw", "name", "value"),
    [
        ("APP_LEASE", "12", "LEASE", 12.0),
        ("APP_LEASE", " 0.5 ", "LEASE", 0.5),
        ("APP_ATTEMPTS", "7", "ATTEMPTS", 7),
        ("APP_KEYED", "0", "KEYED", False),
        ("APP_KEYED", "True", "KEYED", True),
        ("APP_URL", "http://127.0.0.1:9", "URL", "http://127.0.0.1:9"),
        ("APP_NAMES", "x, y,", "NAMES", ["x", "y"]),
    ],
)
def test_override_has_the_type_of_its_default(
    monkeypatch: pytest.MonkeyPatch, variable: str, raw: str, name: str, value: object
) -> None:
    monkeypatch.setenv(variable, raw)
    found = environment.overrides("APP", DEFAULTS)
    assert found == {name: value}
    assert type(found[name]) is type(value)


def test_nothing_is_overridden_where_the_environment_is_silent() -> None:
    assert environment.overrides("APP", DEFAULTS) == {}


@pytest.mark.parametrize(
    ("variable", "raw", "said"),
    [
        ("APP_LEASE", "soon", "APP_LEASE='soon' is not a number"),
        ("APP_LEASE", "nan", "APP_LEASE='nan' is not a number"),
        ("APP_LEASE", "", "APP_LEASE='' is not a number"),
        ("APP_ATTEMPTS", "3.5", "APP_ATTEMPTS='3.5' is not a whole number"),
        ("APP_KEYED", "maybe", "APP_KEYED='maybe' is not a yes or no"),
        ("APP_LEESE", "1", "APP_LEESE: there is no setting"),
    ],
)
def test_malformed_override_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, raw: str, said: str
) -> None:
    monkeypatch.setenv(variable, raw)
    with pytest.raises(ImproperlyConfigured, match=said):
        environment.overrides("APP", DEFAULTS)


def test_fault_point_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDEMPOTENCY_FAULT_POINT", "after_call:kill")
    assert environment.overrides("IDEMPOTENCY", {}) == {}


@pytest.mark.parametrize("raw", ["0", "65536", "-1", "http"])
def test_port_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv("PORT", raw)
    with pytest.raises(ImproperlyConfigured, match="PORT"):
        environment.port("PORT", 8000)


def test_database_address_is_taken_apart() -> None:
    found = environment.database("postgresql://me:p%40ss@db.example:6432/books?sslmode=require")
    assert found == {
        "ENGINE": "project.postgresql",
        "NAME": "books",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "6432",
        "OPTIONS": {"sslmode": "require"},
    }


@pytest.mark.parametrize(
    "address", ["sqlite:///db.sqlite3", "mysql://localhost/x", "", "postgres://h:port/x"]
)
def test_address_of_another_kind_is_refused(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        environment.database(address)
