"""Settings that cannot work are refused before the first request (R26); each check has an id and a hint."""

from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings

from payments.checks import check_sealing, check_settings, longest_pauses
from payments.conf import DEMO_SECRET, SETTINGS, conf

FINE = {"GATEWAY_URL": "http://127.0.0.1:1", "WEBHOOK_SECRET": "whsec_of_our_own"}


def ids(settings: LazySettings, **payments: Any) -> list[str | None]:
    settings.PAYMENTS = FINE | payments
    messages = check_settings()
    assert all(message.hint for message in messages)
    return [message.id for message in messages]


def test_the_defaults_are_fine(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {}
    assert ids(settings) == []


@pytest.mark.parametrize(
    ("payments", "found"),
    [
        ({"GATEWAY_URL": ""}, "payments.E004"),
        ({"GATEWAY_URL": "gateway"}, "payments.E004"),
        ({"GATEWAY_URL": "ftp://gateway"}, "payments.E004"),
        ({"GATEWAY_URL": "http://[::1"}, "payments.E004"),
        ({"GATEWAY_TIMEOUT": "3"}, "payments.E002"),
        ({"GATEWAY_TIMEOUT": float("nan")}, "payments.E002"),
        ({"GATEWAY_ATTEMPTS": 0}, "payments.E002"),
        ({"BREAKER_RATIO": 1.5}, "payments.E002"),
        ({"GATEWAY_KEYED": "yes"}, "payments.E002"),
        ({"GATEWAY_TIMEUOT": 3}, "payments.E003"),
        ({"GATEWAY_TIMEOUT": 4}, "payments.E005"),
        ({"GATEWAY_ATTEMPTS": 4}, "payments.E005"),
        ({"GATEWAY_RETRY_BASE": 2, "GATEWAY_RETRY_CAP": 2}, "payments.E005"),
        ({"GATEWAY_KEY_TTL": 9}, "payments.E006"),
        ({"GATEWAY_KEY_TTL": 600}, "payments.W003"),
        ({"GATEWAY_SETTLING_TIME": 33}, "payments.E008"),
        ({"WEBHOOK_SECRET": ""}, "payments.W002"),
        ({"ENDPOINT_PRIVATE": True}, "payments.E009"),
    ],
)
def test_what_cannot_work_is_found(
    settings: LazySettings, payments: dict[str, Any], found: str
) -> None:
    settings.DEBUG = False
    settings.IDEMPOTENCY = {}
    assert ids(settings, **payments) == [found]


def test_an_unkeyed_gateway_remembers_nothing_and_that_is_fine(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {}
    assert ids(settings, GATEWAY_KEYED=False, GATEWAY_KEY_TTL=0) == []


def test_the_demo_secret_is_for_debug_only(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {}
    settings.DEBUG = True
    assert ids(settings, WEBHOOK_SECRET=DEMO_SECRET) == []
    settings.DEBUG = False
    assert ids(settings, WEBHOOK_SECRET=DEMO_SECRET) == ["payments.E007"]


def test_readable_secrets_of_endpoints_are_told_before_a_deployment(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {}
    assert [message.id for message in check_sealing()] == ["payments.W004"]
    settings.IDEMPOTENCY = {"ENCRYPTION_KEYS": [Fernet.generate_key().decode()]}
    assert check_sealing() == []


def test_events_that_outlive_their_memory_are_told(settings: LazySettings) -> None:
    settings.IDEMPOTENCY = {"KEY_TTL": 86_400, "RESULT_TTL": 3_600}
    assert ids(settings) == ["payments.W001"]


def test_settings_that_are_no_dict_are_told(settings: LazySettings) -> None:
    settings.PAYMENTS = ["GATEWAY_URL"]
    assert [message.id for message in check_settings()] == ["payments.E001"]


def test_pauses_are_bounded_by_their_cap(settings: LazySettings) -> None:
    settings.PAYMENTS = FINE | {"GATEWAY_ATTEMPTS": 4, "GATEWAY_RETRY_BASE": 0.5}
    assert longest_pauses() == 0.5 + 1 + 1


def test_demo_values_are_there_in_debug_only(settings: LazySettings) -> None:
    settings.PAYMENTS = {}
    settings.DEBUG = True
    assert conf.WEBHOOK_SECRET == DEMO_SECRET
    assert conf.GATEWAY_URL
    settings.DEBUG = False
    assert (conf.WEBHOOK_SECRET, conf.GATEWAY_URL) == ("", "")


def test_every_setting_says_what_it_is_for() -> None:
    assert all(setting.doc.endswith(".") for setting in SETTINGS)
