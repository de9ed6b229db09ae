"""Settings: typed, read live, with the published defaults; table and properties are one list."""

from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from idempotency.conf import SETTINGS, Conf, conf

PUBLISHED = {
    "REQUEST_BUDGET": 12.0,
    "LEASE": 45.0,
    "RESULT_TTL": 259_200.0,
    "KEY_TTL": 2_592_000.0,
    "MISMATCH_STATUS": 422,
    "MAX_RESPONSE_BYTES": 1_048_576,
    "RECONCILE_EVERY": 5.0,
    "WAKE_EVERY": 5.0,
    "PURGE_EVERY": 60.0,
    "OPERATION_MAX_ATTEMPTS": 3,
    "OPERATION_TIME_LIMIT": 30.0,
    "RETRY_BASE": 0.1,
    "RETRY_CAP": 5.0,
    "WAIT": 0.0,
}


@override_settings(IDEMPOTENCY={})
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_defaults_are_the_published_ones(name: str) -> None:
    value = getattr(conf, name)
    assert value == PUBLISHED[name]
    assert type(value) is type(PUBLISHED[name])


def test_a_setting_is_read_live() -> None:
    with override_settings(IDEMPOTENCY={"LEASE": 7}):
        assert conf.LEASE == 7.0
        assert isinstance(conf.LEASE, float)
    with override_settings(IDEMPOTENCY={"LEASE": 8}):
        assert conf.LEASE == 8.0


def test_a_setting_that_is_changed_in_its_place_is_read_live() -> None:
    names = ["A"]
    with override_settings(IDEMPOTENCY={"LEASE": 7, "STORED_HEADERS": names}):
        assert (conf.LEASE, conf.STORED_HEADERS) == (7.0, ("A",))
        settings.IDEMPOTENCY["LEASE"] = 8
        names.append("B")
        changed: object = (conf.LEASE, conf.STORED_HEADERS)
        assert changed == (8.0, ("A", "B"))


def test_what_is_made_of_another_setting_changes_with_it() -> None:
    with override_settings(IDEMPOTENCY={}, SECRET_KEY="one"):
        first = conf.FINGERPRINT_SECRETS
    with override_settings(IDEMPOTENCY={}, SECRET_KEY="two"):
        assert conf.FINGERPRINT_SECRETS.keys().isdisjoint(first)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEASE", "45"),
        ("LEASE", True),
        ("LEASE", 0),
        ("LEASE", -1),
        ("LEASE", float("nan")),
        ("LEASE", float("inf")),
        ("LEASE", None),
        ("WAIT", -0.1),
        ("MISMATCH_STATUS", 200),
        ("MISMATCH_STATUS", 422.0),
        ("MAX_RESPONSE_BYTES", 0),
        ("OPERATION_MAX_ATTEMPTS", True),
        ("DATABASE", ""),
        ("DATABASE", None),
        ("STORED_HEADERS", "Location"),
        ("STORED_HEADERS", ["Location", ""]),
        ("STORED_HEADERS", 1),
        ("SCOPE", "no.such.module.scope"),
        ("SCOPE", "nonsense"),
        ("SCOPE", 1),
        ("FINGERPRINT_SECRETS", {}),
        ("FINGERPRINT_SECRETS", ["secret"]),
        ("FINGERPRINT_SECRETS", {"a": ""}),
        ("FINGERPRINT_SECRETS", {"": "secret"}),
        ("FINGERPRINT_SECRETS", {"a" * 33: "secret"}),
        ("FINGERPRINT_SECRETS", {"a": 1}),
    ],
)
def test_a_wrong_value_is_refused_by_name_when_it_is_read(name: str, value: object) -> None:
    with (
        override_settings(IDEMPOTENCY={name: value}),
        pytest.raises(ImproperlyConfigured, match=name),
    ):
        getattr(conf, name)


def test_no_refusal_repeats_a_secret() -> None:
    with (
        override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"": "hush-hush"}}),
        pytest.raises(ImproperlyConfigured) as caught,
    ):
        _ = conf.FINGERPRINT_SECRETS
    assert "hush-hush" not in str(caught.value)


@override_settings(IDEMPOTENCY=["LEASE"])
def test_the_settings_must_be_a_dict() -> None:
    with pytest.raises(ImproperlyConfigured, match="list"):
        _ = conf.LEASE


def test_a_hook_is_a_callable_or_its_path() -> None:
    def scope(request: Any) -> str:
        return "everyone"

    with override_settings(IDEMPOTENCY={"SCOPE": scope, "TENANT": "operator.attrgetter"}):
        assert conf.SCOPE is scope
        assert conf.TENANT is not None
    with override_settings(IDEMPOTENCY={}):
        assert conf.SCOPE is not None
        assert conf.SCOPE.__name__ == "tenant_and_user"
        assert conf.TENANT is None


def test_a_rotated_secret_key_shows_in_the_names_and_stays_valid_as_a_fallback() -> None:
    with override_settings(SECRET_KEY="old", SECRET_KEY_FALLBACKS=[], IDEMPOTENCY={}):
        (old,) = conf.FINGERPRINT_SECRETS.items()
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"], IDEMPOTENCY={}):
        new, kept = conf.FINGERPRINT_SECRETS.items()
    assert kept == old
    assert new[0] != old[0]
    assert b"old" not in old[1]


def test_the_first_secret_is_the_current_one() -> None:
    with override_settings(IDEMPOTENCY={"FINGERPRINT_SECRETS": {"2": "b", "1": b"a"}}):
        assert dict(conf.FINGERPRINT_SECRETS) == {"2": b"b", "1": b"a"}
        assert next(iter(conf.FINGERPRINT_SECRETS)) == "2"


def test_the_table_lists_every_setting_once_with_a_sentence() -> None:
    names = [setting.name for setting in SETTINGS]
    assert len(set(names)) == len(names)
    assert set(names) == {name for name in vars(Conf) if name.isupper()}
    assert all(setting.doc.endswith(".") and setting.kind != "value" for setting in SETTINGS)


@override_settings(IDEMPOTENCY={"LEASE": 45, "LEESE": 45, "ttl": 1})
def test_unknown_names_are_found() -> None:
    assert conf.unknown() == ["LEESE", "ttl"]
