"""Which request a fault strikes: order, match, look-ups; and what is refused as a fault."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import stripe

from tests.contract.simulator_process import Gateway, running


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    data_dir: Path = tmp_path_factory.mktemp("gateway")
    with running(data_dir) as gateway:
        yield gateway


@pytest.fixture
def gateway(process: Gateway) -> Gateway:
    process.control("POST", "reset")
    return process


def test_faults_are_used_up_in_the_order_given(gateway: Gateway) -> None:
    gateway.add_fault("refuse_503", times=2)
    gateway.add_fault("rate_limit_429")
    seen = [_charge(gateway) for _ in range(4)]
    assert seen == ["503", "503", "429", "succeeded"]
    remaining = [fault["remaining"] for fault in gateway.control("GET", "faults")]
    assert remaining == [0, 0]


def test_faults_are_forgotten_and_what_has_happened_is_not(gateway: Gateway) -> None:
    gateway.add_fault("reset_after", times=2)
    gateway.add_fault("refuse_503", path="/v1/refunds")
    assert _charge(gateway) == "None"
    assert gateway.control("DELETE", "faults") == {"forgotten": 2}
    assert gateway.control("GET", "faults") == []
    # Also the key is remembered.
    assert _charge(gateway) == "succeeded"
    assert len(gateway.effects()) == 1
    assert gateway.control("DELETE", "faults") == {"forgotten": 0}


@pytest.mark.parametrize(
    ("match", "strikes"),
    [
        ({"amount": 1000}, True),
        ({"amount": 999}, False),
        ({"reference": "ref-1"}, True),
        ({"reference": "ref-2"}, False),
        ({"idempotency_key": "k1"}, True),
        ({"idempotency_key": "k2"}, False),
        ({"method": "post", "amount": 1000}, True),
        ({"method": "GET"}, False),
    ],
)
def test_a_fault_strikes_what_it_matches(
    gateway: Gateway, match: dict[str, object], strikes: bool
) -> None:
    gateway.add_fault("refuse_503", match=match)
    assert _charge(gateway) == ("503" if strikes else "succeeded")


@pytest.mark.parametrize(
    ("path", "match", "strikes"),
    [
        ("/v1/refunds", {}, False),
        ("/v1/refunds", {"method": "GET"}, True),
        ("/v1/*", {}, False),
        ("/v1/*", {"method": "GET"}, True),
        ("/v1/payouts", {"method": "GET"}, False),
        ("*", {}, False),
    ],
)
def test_a_look_up_is_struck_only_where_path_and_method_match(
    gateway: Gateway, path: str, match: dict[str, object], strikes: bool
) -> None:
    gateway.add_fault("refuse_503", path, match=match)
    answer = requests.get(f"{gateway.url}/v1/refunds", auth=("sk_test_x", ""), timeout=5)
    assert answer.status_code == (503 if strikes else 200)


def test_a_search_is_matched_by_the_reference_it_looks_for(gateway: Gateway) -> None:
    path = "/v1/payment_intents/search"
    gateway.add_fault("refuse_503", path, match={"reference": "mine"})
    with gateway.client() as client:
        client.v1.payment_intents.search({"query": "metadata['reference']:'other'"})
        with pytest.raises(stripe.APIError):
            client.v1.payment_intents.search({"query": "metadata['reference']:'mine'"})


def test_what_can_only_be_read_is_struck_by_its_path(gateway: Gateway) -> None:
    gateway.add_fault("refuse_503", "/v1/payment_intents/search")
    gateway.add_fault("refuse_503", "/deps/*", times=2)
    with gateway.client() as client, pytest.raises(stripe.APIError):
        client.v1.payment_intents.search({"query": "metadata['reference']:'x'"})
    for path in ("rates", "offers"):
        assert requests.get(f"{gateway.url}/deps/{path}", timeout=5).status_code == 503


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"kind": "drip"}, "path"),
        ({"path": "/v1/nothing", "kind": "drip"}, "path"),
        ({"path": "/v1/refunds"}, "kind"),
        ({"path": "/v1/refunds", "kind": "explode"}, "kind"),
        ({"path": "/v1/refunds", "kind": "drip", "times": 0}, "times"),
        ({"path": "/v1/refunds", "kind": "drip", "times": True}, "times"),
        ({"path": "/v1/refunds", "kind": "drip", "seconds": "1"}, "seconds"),
        ({"path": "/v1/refunds", "kind": "drip", "seconds": -1}, "seconds"),
        ({"path": "/v1/refunds", "kind": "drip", "retry_after": {}}, "retry_after"),
        ({"path": "/v1/refunds", "kind": "drip", "retry_after": "1\r\nX: y"}, "retry_after"),
        ({"path": "/v1/refunds", "kind": "drip", "match": []}, "match"),
        ({"path": "/v1/refunds", "kind": "drip", "match": {"colour": 1}}, "match.colour"),
        ({"path": "/v1/refunds", "kind": "drip", "match": {"amount": "1"}}, "match.amount"),
        (
            {"path": "/v1/refunds", "kind": "reset_sending_before", "match": {"amount": 1}},
            "match.amount",
        ),
        ({"path": "/v1/refunds", "kind": "drip", "how": "slowly"}, "how"),
        ([], "body"),
    ],
)
def test_a_fault_that_cannot_be_used_is_refused_naming_the_field(
    gateway: Gateway, fault: object, field: str
) -> None:
    assert gateway.refused_control("POST", "faults", fault) == field
    assert gateway.control("GET", "faults") == []


def _charge(gateway: Gateway) -> str:
    try:
        return gateway.charge(key="k1").status
    except stripe.StripeError as error:
        return str(error.http_status)
