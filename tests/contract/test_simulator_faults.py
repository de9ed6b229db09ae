"""Every kind of fault: what the client saw, what the effects say, and what a repeat gets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
import stripe

from payments.simulator.faults.kinds import KINDS, Applied
from tests.contract.simulator_process import Gateway, eventually, running

pytestmark = pytest.mark.sampled(2)

# Kind: what the client sees, whether the answer bears the gateway's mark, and what the same
# request under the same key gets afterwards.
SEEN = {
    "refuse_503": ("503", True, "succeeded"),
    "rate_limit_429": ("429", True, "succeeded"),
    "error_500_before": ("500", True, "succeeded"),
    "error_500_kept_before": ("500", True, "500"),
    "error_500_after": ("500", True, "500"),
    "error_400_kept_before": ("400", True, "400"),
    "bad_gateway_502_before": ("502", False, "succeeded"),
    "bad_gateway_502_after": ("502", False, "succeeded"),
    "proxy_503_before": ("503", False, "succeeded"),
    "proxy_503_after": ("503", False, "succeeded"),
    "proxy_429_after": ("429", False, "succeeded"),
    "gateway_timeout_504_after": ("504", False, "succeeded"),
    "html_200_before": ("200", False, "succeeded"),
    "html_200_after": ("200", False, "succeeded"),
    "hang_sending_before": ("timeout", False, "succeeded"),
    "hang_before": ("timeout", False, "succeeded"),
    "hang_after": ("timeout", False, "succeeded"),
    "hang_mid_headers_after": ("timeout", False, "succeeded"),
    "hang_mid_body_after": ("timeout", False, "succeeded"),
    "reset_sending_before": ("lost", False, "succeeded"),
    "reset_before": ("lost", False, "succeeded"),
    "reset_after": ("lost", False, "succeeded"),
    "reset_mid_headers_after": ("lost", False, "succeeded"),
    "reset_mid_body_after": ("cut", False, "succeeded"),
    "close_before": ("lost", False, "succeeded"),
    "close_after": ("lost", False, "succeeded"),
    "truncate_after": ("cut", False, "succeeded"),
    # A head without its blank line still reads as an answer without a body.
    "truncate_headers_after": ("200", False, "succeeded"),
    "truncate_chunked_after": ("cut", False, "succeeded"),
    "garbage_after": ("lost", False, "succeeded"),
    "length_short_after": ("200", False, "succeeded"),
    "length_long_after": ("cut", False, "succeeded"),
    "drip": ("succeeded", True, "succeeded"),
    "drip_body_after": ("succeeded", True, "succeeded"),
    "slow_after": ("succeeded", True, "succeeded"),
    "idle_close_after": ("succeeded", True, "succeeded"),
    "idle_reset_after": ("succeeded", True, "succeeded"),
    "late_success": ("lost", False, "409"),
}
LASTING = {"drip": 0.2, "drip_body_after": 0.2, "slow_after": 0.2, "late_success": 3600}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    data_dir: Path = tmp_path_factory.mktemp("gateway")
    with running(data_dir) as gateway:
        yield gateway


@pytest.fixture
def gateway(process: Gateway) -> Gateway:
    process.control("POST", "reset")
    return process


def test_every_kind_is_tried() -> None:
    assert set(SEEN) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_client_sees_the_fault_and_the_effects_tell_the_truth(
    gateway: Gateway, kind: str
) -> None:
    seen, marked, then = SEEN[kind]
    gateway.add_fault(kind, seconds=LASTING.get(kind, 30))

    assert _charge(gateway, timeout=_patience(kind)) == (seen, marked)

    applied = KINDS[kind].applied is Applied.NOW
    assert len(gateway.effects()) == applied
    assert _charge(gateway)[0] == then
    assert len(gateway.effects()) == (applied or then == "succeeded")
    assert len(gateway.requests()) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_without_keys_a_repeat_is_a_second_effect(gateway: Gateway, kind: str) -> None:
    gateway.configure(idempotency=False)
    gateway.add_fault(kind, seconds=LASTING.get(kind, 30))
    _charge(gateway, timeout=_patience(kind))
    _charge(gateway)
    assert len(gateway.effects()) == 1 + (KINDS[kind].applied is Applied.NOW)


def test_late_success_applies_once_though_the_answer_was_lost(gateway: Gateway) -> None:
    gateway.add_fault("late_success", seconds=0.3)
    assert _charge(gateway)[0] == "lost"
    assert gateway.effects() == []
    [effect] = eventually(gateway.effects, bool)
    assert effect["idempotency_key"] == "k1"
    assert _charge(gateway)[0] == "succeeded"
    assert len(gateway.effects()) == 1
    assert [request["status"] for request in gateway.requests()] == [None, 200]


def test_a_status_is_written_down_only_when_one_was_sent(gateway: Gateway) -> None:
    for kind in ("reset_after", "hang_before", "truncate_after", "garbage_after", "refuse_503"):
        gateway.add_fault(kind)
        _charge(gateway, key=kind, timeout=_patience(kind))
    assert [request["status"] for request in gateway.requests()] == [None, None, 200, None, 503]


def test_a_status_is_taken_back_when_the_client_left_before_it(gateway: Gateway) -> None:
    gateway.add_fault("slow_after", seconds=30)
    assert _charge(gateway, timeout=0.4) == ("timeout", False)
    eventually(gateway.requests, lambda received: received[0]["status"] is None)


@pytest.mark.parametrize(
    ("retry_after", "sent"),
    [
        (None, []),
        (2, ["2"]),
        ("-1", ["-1"]),
        ("1e9", ["1e9"]),
        ("1_0", ["1_0"]),
        ("soon", ["soon"]),
        ("", [""]),
        ("Wed, 21 Oct 2015 07:28:00 GMT", ["Wed, 21 Oct 2015 07:28:00 GMT"]),
        (["1", "120"], ["1", "120"]),
    ],
)
@pytest.mark.parametrize("kind", ["refuse_503", "rate_limit_429"])
def test_retry_after_is_sent_as_given(
    gateway: Gateway, kind: str, retry_after: object, sent: list[str]
) -> None:
    gateway.add_fault(kind, "/deps/rates", retry_after=retry_after)
    answer = requests.get(f"{gateway.url}/deps/rates", timeout=5)
    assert answer.raw.headers.getlist("Retry-After") == sent


def test_full_width_digits_are_sent_as_utf_8(gateway: Gateway) -> None:
    gateway.add_fault("refuse_503", "/deps/rates", retry_after="１２")
    answer = requests.get(f"{gateway.url}/deps/rates", timeout=5)
    assert answer.headers["Retry-After"].encode("latin-1").decode() == "１２"


def test_a_drip_takes_the_time_asked_for(gateway: Gateway) -> None:
    gateway.add_fault("drip", "/deps/rates", seconds=0.5)
    begun = time.monotonic()
    assert requests.get(f"{gateway.url}/deps/rates", timeout=5).json()["base"] == "EUR"
    assert 0.4 < time.monotonic() - begun < 5


def test_a_fault_leaves_a_kept_alive_connection_usable(gateway: Gateway) -> None:
    gateway.add_fault("refuse_503", "/deps/rates")
    gateway.add_fault("idle_close_after", "/deps/rates")
    with requests.Session() as session:

        def get() -> int:
            return session.get(f"{gateway.url}/deps/rates", timeout=5).status_code

        statuses = [get(), get()]
        adapter: Any = session.get_adapter(gateway.url)
        (used,) = adapter.poolmanager.pools.keys()
        kept = adapter.poolmanager.pools[used].pool.queue[-1]
        # Who is quicker than the gateway's close writes into it, and hears no answer.
        eventually(lambda: kept.is_connected, lambda connected: not connected)
        statuses += [get(), get()]
    assert statuses == [503, 200, 200, 200]


def test_a_reset_forgets_also_what_is_under_way(gateway: Gateway) -> None:
    gateway.configure(latency=0.3)
    gateway.add_fault("late_success", match={"reference": "late"}, seconds=0.2)
    with ThreadPoolExecutor() as pool:
        under_way = pool.submit(_charge, gateway)
        with pytest.raises(stripe.APIConnectionError):
            gateway.charge(reference="late")
        eventually(gateway.requests, lambda received: len(received) == 2)
        gateway.control("POST", "reset")
        assert under_way.result()[0] == "lost"
    assert gateway.charge(reference="after").status == "succeeded"
    eventually(gateway.effects, bool)
    assert [effect["reference"] for effect in gateway.effects()] == ["after"]
    assert gateway.control("GET", "config")["latency"] == 0


def _charge(gateway: Gateway, *, key: str = "k1", timeout: float = 5) -> tuple[str, bool]:
    """Charge under a key; return what was seen, and whether it bore the gateway's mark."""
    try:
        intent = gateway.charge(key=key, timeout=timeout)
    except stripe.APIConnectionError as error:
        return _broken(error.__cause__), False
    except stripe.StripeError as error:
        return str(error.http_status), "Request-Id" in (error.headers or {})
    assert intent.last_response is not None
    return intent.status, "Request-Id" in intent.last_response.headers


def _patience(kind: str) -> float:
    """Return the client's timeout: short only where it is what ends the call."""
    return 0.4 if SEEN[kind][0] == "timeout" else 5


def _broken(cause: BaseException | None) -> str:
    if isinstance(cause, requests.Timeout) or "Read timed out" in str(cause):
        return "timeout"
    if isinstance(cause, requests.exceptions.ChunkedEncodingError):
        return "cut"
    assert isinstance(cause, requests.ConnectionError), cause
    return "lost"
