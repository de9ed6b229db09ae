"""What guards the gateway, how it is asked again, and what is told of it: Stripe's adapter over real sockets."""

import hashlib
import logging
import threading
import time
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured

from idempotency.exceptions import (
    CallFailed,
    CallRejected,
    CallUnknown,
)
from idempotency.resilience import BreakerSettings, BreakerState
from idempotency.types import Absent, Applied, OutsideRequest
from payments.gateway import gateway
from payments.gateway.guarded import GuardedGateway, configured
from tests.contract.simulator_process import Gateway, eventually, running
from tests.support.gateways import (
    API_KEY,
    PATH,
    charge,
    charge_params,
    gateway_at,
    journal,
    open_step,
    outside_request,
)

QUICK_BREAKER = BreakerSettings(min_calls=2, ratio=0.5, open_seconds=30)


@pytest.fixture(scope="module")
def running_simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(tmp_path_factory.mktemp("simulator")) as simulator:
        yield simulator


@pytest.fixture
def simulator(running_simulator: Gateway) -> Gateway:
    running_simulator.control("POST", "reset")
    return running_simulator


# -- breaker and bulkhead ----------------------------------------------------------------------------------------------


def test_r27_an_open_breaker_sends_nothing_and_look_ups_go_on(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, attempts=1, breaker=QUICK_BREAKER)
    simulator.add_fault("error_500_before", PATH, times=2)
    request = outside_request(charge_params(made))
    for _ in range(2):
        with pytest.raises(CallUnknown), journal():
            made.charge(request)
    with pytest.raises(CallFailed) as raised:
        charge(made, key="key-2")
    assert (raised.value.code, raised.value.sent) == ("circuit-open", False)
    assert raised.value.retry_after is not None
    assert raised.value.report is not None
    assert raised.value.report.attempts == 0
    assert len(simulator.requests()) == 2
    assert made.look_up_charge(open_step(request)) == Absent()


def test_r27_look_ups_that_fail_do_not_stop_charges(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, attempts=1, breaker=QUICK_BREAKER)
    simulator.add_fault("error_500_before", f"{PATH}/pi_1", times=2)
    for _ in range(2):
        with pytest.raises(CallFailed):
            made.retrieve_charge("pi_1")
    with pytest.raises(CallFailed) as raised:
        made.retrieve_charge("pi_1")
    assert raised.value.code == "circuit-open"
    assert charge(made).reference


def test_h10_twenty_declines_do_not_open_the_breaker(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, breaker=QUICK_BREAKER)
    for number in range(20):
        with pytest.raises(CallRejected):
            charge(made, key=f"key-{number}", source="pm_card_chargeDeclined")
    assert charge(made, key="another").reference


def test_h10_our_bad_credentials_are_a_failure_and_do_not_open_the_breaker(
    simulator: Gateway,
) -> None:
    made = gateway_at(simulator.url, api_key="not_a_key", breaker=QUICK_BREAKER)
    for number in range(20):
        with pytest.raises(CallFailed) as raised:
            charge(made, key=f"key-{number}")
        assert (raised.value.code, raised.value.sent) == ("gateway-unavailable", True)
    breaker = made.sends.terms.breaker
    assert breaker is not None
    assert breaker.snapshot().state is BreakerState.CLOSED


def test_r27_the_breaker_is_shared_by_gateways_of_one_account(
    simulator: Gateway, redis_url: str
) -> None:
    def another(api_key: str) -> GuardedGateway:
        return gateway_at(
            simulator.url,
            attempts=1,
            api_key=api_key,
            breaker=QUICK_BREAKER,
            store_url=redis_url,
        )

    simulator.add_fault("error_500_before", PATH, times=2)
    for _ in range(2):
        with pytest.raises(CallUnknown):
            charge(another("sk_test_a"))
    with pytest.raises(CallFailed) as raised:
        charge(another("sk_test_a"))
    assert raised.value.code == "circuit-open"
    assert charge(another("sk_test_b")).reference


def test_r28_a_full_bulkhead_refuses_at_once(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, attempts=1, bulkhead=1, attempt_timeout=10)
    simulator.configure(latency=1.0)
    slow = threading.Thread(target=charge, args=(made,))
    slow.start()
    eventually(simulator.requests, lambda seen: len(seen) == 1)
    with pytest.raises(CallFailed) as raised:
        charge(made, key="key-2")
    assert (raised.value.code, raised.value.sent) == ("overloaded", False)
    slow.join()
    assert len(simulator.requests()) == 1


def test_h8_calls_at_the_same_time_do_not_wait_for_one_another(simulator: Gateway) -> None:
    made = gateway_at(simulator.url)
    simulator.configure(latency=1.0)
    calls = [
        threading.Thread(
            target=charge, args=(made,), kwargs={"key": f"key-{n}", "reference": f"payment-{n}"}
        )
        for n in range(8)
    ]
    began = time.monotonic()
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    # One after the other they would take 8 s.
    assert time.monotonic() - began < 6
    assert len(simulator.effects()) == 8


# -- look-ups ----------------------------------------------------------------------------------------------------------


def test_a_look_up_reads_every_page(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, attempt_timeout=10)
    params = charge_params(made, source="pm_card_processing")
    with journal():
        made.charge(OutsideRequest("the-first", outside_request(params).payload))
    payouts = [
        outside_request(
            {
                "amount": 1,
                "currency": "eur",
                "destination": "acct_ok",
                "metadata": {"reference": f"p{n}"},
            },
            key=f"payout-{n}",
        )
        for n in range(103)
    ]
    with journal():
        results = [made.pay(payout) for payout in payouts]
    assert made.look_up_payout(open_step(payouts[0])) == Applied(results[0])
    pages = [r for r in simulator.requests() if (r["method"], r["path"]) == ("GET", "/v1/payouts")]
    assert len(pages) == 2


def test_r36_a_page_of_something_in_between_is_no_absence(simulator: Gateway) -> None:
    made = gateway_at(simulator.url)
    simulator.add_fault("html_200_before", f"{PATH}/search", times=3)
    with pytest.raises(CallFailed):
        made.look_up_charge(open_step(outside_request(charge_params(made))))


def test_r36_a_look_up_is_repeated_without_a_journal(simulator: Gateway) -> None:
    made = gateway_at(simulator.url, keyed=False)
    simulator.add_fault("reset_before", f"{PATH}/search", times=2)
    assert made.look_up_charge(open_step(outside_request(charge_params(made)))) == Absent()
    assert len(simulator.requests()) == 3


# -- what is not told --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("pm_card_chargeDeclined", None),
        ("pm_secret_4242424242424242", None),
        ("pm_card_visa", "length_short_after"),
        ("pm_card_visa", "error_400_kept_before"),
        ("pm_card_visa", "html_200_after"),
    ],
)
def test_no_error_and_no_log_tells_a_secret(
    simulator: Gateway, caplog: pytest.LogCaptureFixture, source: str, kind: str | None
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="stripe")
    if kind is not None:
        simulator.add_fault(kind, PATH)
    with pytest.raises((CallRejected, CallFailed, CallUnknown)) as raised:
        charge(gateway_at(simulator.url, attempts=1), source=source)
    error = raised.value
    told = f"{error!r} {error.report} {vars(error)} {caplog.text}"
    for secret in (API_KEY, "4242424242424242", "_secret_"):
        assert secret not in told
    assert error.__cause__ is None or isinstance(error, CallUnknown)


# -- the one that the settings name ------------------------------------------------------------------------------------


def test_the_settings_name_the_gateway(simulator: Gateway, settings: LazySettings) -> None:
    settings.PAYMENTS = {"GATEWAY_URL": simulator.url, "GATEWAY_API_KEY": API_KEY}
    first = gateway()
    assert first is configured()
    assert first.downstream.keyed
    assert charge(configured()).reference
    settings.PAYMENTS = {**settings.PAYMENTS, "GATEWAY_KEYED": False, "GATEWAY_ATTEMPTS": 2}
    second = configured()
    assert second is not first
    assert not second.downstream.keyed
    simulator.add_fault("reset_after", PATH)
    with pytest.raises(CallUnknown):
        charge(second, key="key-2", reference="payment-2")
    assert len(simulator.requests()) == 2


def test_a_breaker_is_named_after_the_account_and_tells_no_secret(settings: LazySettings) -> None:
    settings.PAYMENTS = {"GATEWAY_URL": "http://127.0.0.1:1", "GATEWAY_API_KEY": API_KEY}
    breaker = configured().sends.terms.breaker
    assert breaker is not None
    digest = hashlib.sha256(API_KEY.encode()).hexdigest()[:8]
    assert breaker.name == f"gateway 127.0.0.1:1:{digest}"


def test_r13_a_gateway_without_an_address_is_refused(settings: LazySettings) -> None:
    settings.PAYMENTS = {"GATEWAY_URL": ""}
    with pytest.raises(ImproperlyConfigured, match="GATEWAY_URL"):
        configured()
