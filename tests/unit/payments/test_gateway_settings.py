"""What the gateway and the sources are made of, by the settings."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured

from payments.dependencies import sources
from payments.gateway import guarded

URL = "http://gateway.invalid:1"


def terms(settings: LazySettings, **payments: Any) -> guarded.Terms:
    settings.PAYMENTS = {"GATEWAY_URL": URL, **payments}
    return guarded.Terms.of_settings()


def test_r25_the_defaults_are_those_of_the_contract(settings: LazySettings) -> None:
    made = terms(settings)
    policy, breaker = made.policy, made.breaker
    assert (policy.attempts, policy.base, policy.cap, policy.attempt_timeout) == (3, 0.05, 1.0, 3.0)
    assert (made.keyed, made.settling_time, made.key_memory, made.bulkhead) == (True, 20, 86400, 32)
    assert (breaker.window, breaker.min_calls, breaker.ratio) == (30, 10, 0.5)
    assert (breaker.open_seconds, breaker.probes, breaker.successes) == (10, 2, 2)
    # R26: what the attempts can take fits into the request's budget of 12 s.
    assert policy.worst_case < 12


@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize("timeout", [0.05, 60])
def test_any_accepted_setting_makes_a_gateway(
    settings: LazySettings, attempts: int, timeout: float
) -> None:
    made = terms(settings, GATEWAY_ATTEMPTS=attempts, GATEWAY_TIMEOUT=timeout)
    assert guarded.make(made).sends.terms.policy.attempts == attempts


def test_r25_a_base_above_the_cap_is_the_cap(settings: LazySettings) -> None:
    made = terms(settings, GATEWAY_RETRY_BASE=2, GATEWAY_RETRY_CAP=1)
    assert (made.policy.base, made.policy.cap) == (1, 1)


def test_r27_two_accounts_have_two_breakers(settings: LazySettings) -> None:
    one = terms(settings, GATEWAY_API_KEY="sk_test_a")
    other = terms(settings, GATEWAY_API_KEY="sk_test_b")
    assert one.account != other.account
    assert "sk_test" not in f"{one} {one.account}"


def test_an_address_may_end_in_a_slash(settings: LazySettings) -> None:
    assert terms(settings, GATEWAY_URL=f"{URL}/").url == URL


def test_the_sources_are_at_the_gateway_unless_told_otherwise(settings: LazySettings) -> None:
    settings.PAYMENTS = {"GATEWAY_URL": URL}
    assert sources.Terms.of_settings().url == URL
    settings.PAYMENTS = {"GATEWAY_URL": URL, "DEPENDENCIES_URL": "http://sources.invalid/"}
    assert sources.Terms.of_settings().url == "http://sources.invalid"
    settings.PAYMENTS = {"GATEWAY_URL": "", "DEPENDENCIES_URL": ""}
    with pytest.raises(ImproperlyConfigured, match="DEPENDENCIES_URL"):
        sources.Terms.of_settings()


def test_r30_each_source_has_a_guard_of_its_own_within_its_budget(settings: LazySettings) -> None:
    settings.PAYMENTS = {"GATEWAY_URL": URL}
    made = sources.Dependencies(sources.Terms.of_settings())
    rates, offers = made.rates(), made.offers()
    assert rates.budget == offers.budget == 0.150
    for one, other in ((rates, offers), (offers, rates)):
        assert one.guard.terms.policy.attempts == 1
        assert one.guard.terms.policy.reserve == 0.020
        assert one.guard.terms.breaker is not other.guard.terms.breaker
        assert one.guard.bulkhead is not other.guard.bulkhead


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (sources._rates, {"base": "EUR", "as_of": 1, "rates": {"USD": 0}}),
        (sources._rates, {"base": "EUR", "as_of": 1, "rates": {"USD": "1.09"}}),
        (sources._rates, {"base": "EUR", "as_of": 1, "rates": {"USD": float("inf")}}),
        (sources._rates, {"rates": {}}),
        (sources._rates, []),
        (sources._offers, {"offers": {}}),
        (sources._offers, {"offers": [{"id": 1}]}),
        (sources._offers, None),
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(read: Any, body: Any) -> None:
    with pytest.raises(sources.Unusable):
        read(body)
