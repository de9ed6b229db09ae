"""The official client speaks to the simulator as it does to Stripe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def test_a_charge_succeeds_and_moves_money_once(gateway: Gateway) -> None:
    intent = gateway.charge(key="k1", expand=["latest_charge"])

    assert intent.status == "succeeded"
    assert intent.amount_received == 1000
    charge: Any = intent.latest_charge
    assert charge.paid
    assert charge.captured
    [effect] = gateway.effects()
    assert effect.pop("at") > 0
    assert effect == {
        "id": intent.id,
        "kind": "charge",
        "amount": 1000,
        "currency": "eur",
        "reference": "ref-1",
        "idempotency_key": "k1",
    }


def test_a_request_is_written_down_with_its_status(gateway: Gateway) -> None:
    gateway.charge(key="k1")

    [request] = gateway.requests()
    assert request.pop("at") > 0
    assert request == {
        "method": "POST",
        "path": "/v1/payment_intents",
        "idempotency_key": "k1",
        "reference": "ref-1",
        "amount": 1000,
        "status": 200,
    }


@pytest.mark.parametrize(
    ("token", "code", "decline_code"),
    [
        ("pm_card_chargeDeclined", "card_declined", "generic_decline"),
        ("pm_card_chargeDeclinedInsufficientFunds", "card_declined", "insufficient_funds"),
        ("pm_card_chargeDeclinedExpiredCard", "expired_card", None),
    ],
)
def test_a_decline_is_a_card_error(
    gateway: Gateway, token: str, code: str, decline_code: str | None
) -> None:
    with pytest.raises(stripe.CardError) as declined:
        gateway.charge(token=token)

    assert declined.value.code == code
    error: Any = declined.value.error
    assert getattr(error, "decline_code", None) == decline_code
    assert error.payment_intent.status == "requires_payment_method"
    assert gateway.effects() == []


def test_action_required_is_a_status_on_session_and_a_refusal_off_session(
    gateway: Gateway,
) -> None:
    assert gateway.charge(token="pm_card_authenticationRequired").status == "requires_action"

    with pytest.raises(stripe.CardError) as refused:
        gateway.charge(token="pm_card_authenticationRequired", off_session=True)
    assert refused.value.code == "authentication_required"
    assert gateway.effects() == []


def test_an_unknown_token_is_a_missing_resource(gateway: Gateway) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        gateway.charge(token="pm_nobody")
    assert (refused.value.http_status, refused.value.code) == (400, "resource_missing")


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_processing_charge_is_decided_later(gateway: Gateway, outcome: str) -> None:
    intent = gateway.charge(key="k1", token="pm_card_processing")
    assert intent.status == "processing"
    assert gateway.effects() == []

    gateway.control("POST", "webhooks", {"settle": intent.id, "as": outcome})

    paid = outcome == "succeeded"
    with gateway.client() as client:
        status = client.v1.payment_intents.retrieve(intent.id).status
    assert status == ("succeeded" if paid else "requires_payment_method")
    assert [effect["idempotency_key"] for effect in gateway.effects()] == ["k1"] * paid
    again = {"settle": intent.id, "as": outcome}
    assert gateway.refused_control("POST", "webhooks", again) == "settle"


def test_create_then_confirm_then_capture(gateway: Gateway) -> None:
    with gateway.client() as client:
        intents = client.v1.payment_intents
        created = intents.create({"amount": 500, "currency": "eur", "capture_method": "manual"})
        assert created.status == "requires_payment_method"
        held = intents.confirm(created.id, {"payment_method": "pm_card_visa"})
        assert (held.status, held.amount_capturable) == ("requires_capture", 500)
        assert gateway.effects() == []
        assert intents.capture(created.id, {"amount_to_capture": 300}).status == "succeeded"
        with pytest.raises(stripe.InvalidRequestError, match="status of succeeded"):
            intents.confirm(created.id)
    assert [effect["amount"] for effect in gateway.effects()] == [300]


def test_a_cancelled_intent_cannot_be_confirmed(gateway: Gateway) -> None:
    with gateway.client() as client:
        intents = client.v1.payment_intents
        created = intents.create(
            {"amount": 500, "currency": "eur", "payment_method": "pm_card_visa"}
        )
        assert created.status == "requires_confirmation"
        assert intents.cancel(created.id).status == "canceled"
        with pytest.raises(stripe.InvalidRequestError) as refused:
            intents.confirm(created.id)
    assert refused.value.code == "payment_intent_unexpected_state"


def test_refunds_never_exceed_what_was_captured(gateway: Gateway) -> None:
    intent = gateway.charge()
    with gateway.client() as client:
        refunds = client.v1.refunds
        first = refunds.create(
            {"payment_intent": intent.id, "amount": 700, "metadata": {"reference": "ref-2"}}
        )
        assert first.status == "succeeded"
        with pytest.raises(stripe.InvalidRequestError, match="greater than unrefunded amount"):
            refunds.create({"payment_intent": intent.id, "amount": 301})
        assert refunds.create({"payment_intent": intent.id}).amount == 300
        with pytest.raises(stripe.InvalidRequestError) as refused:
            refunds.create({"payment_intent": intent.id})
        assert refused.value.code == "charge_already_refunded"
        assert refunds.retrieve(first.id).id == first.id
        assert len(refunds.list({"payment_intent": intent.id}).data) == 2
    moved = [(effect["kind"], effect["amount"]) for effect in gateway.effects()]
    assert moved == [("charge", 1000), ("refund", 700), ("refund", 300)]


def test_a_pending_refund_counts_as_spent_until_it_fails(gateway: Gateway) -> None:
    intent = gateway.charge(token="pm_card_pendingRefund")
    with gateway.client() as client:
        pending = client.v1.refunds.create({"payment_intent": intent.id})
        assert pending.status == "pending"
        with pytest.raises(stripe.InvalidRequestError):
            client.v1.refunds.create({"payment_intent": intent.id})
        gateway.control("POST", "webhooks", {"settle": pending.id, "as": "failed"})
        again = client.v1.refunds.create({"payment_intent": intent.id})
    gateway.control("POST", "webhooks", {"settle": again.id, "as": "succeeded"})
    assert [effect["id"] for effect in gateway.effects()] == [intent.id, again.id]


def test_a_payout_goes_to_a_created_account(gateway: Gateway) -> None:
    with gateway.client() as client:
        account = client.v1.accounts.create({"metadata": {"reference": "step-1"}})
        payout = client.v1.payouts.create(
            {"amount": 250, "currency": "eur", "destination": account.id}
        )
        assert payout.status == "paid"
        assert client.v1.payouts.retrieve(payout.id).destination == account.id
        assert [found.id for found in client.v1.payouts.list().data] == [payout.id]
        assert [found.metadata for found in client.v1.accounts.list().data] == [account.metadata]
        for refused_call in (
            lambda: client.v1.payouts.create(
                {"amount": 250, "currency": "eur", "destination": "acct_invalid"}
            ),
            lambda: client.v1.accounts.create({"external_account": "acct_invalid"}),
        ):
            with pytest.raises(stripe.InvalidRequestError) as refused:
                refused_call()
            assert refused.value.code == "resource_missing"
    assert [effect["kind"] for effect in gateway.effects()] == ["payout"]


def test_a_payout_can_be_pending(gateway: Gateway) -> None:
    with gateway.client() as client:
        payout = client.v1.payouts.create(
            {"amount": 250, "currency": "eur", "destination": "acct_pending"}
        )
    assert payout.status == "pending"
    assert gateway.effects() == []
    gateway.configure(settle_after=0)
    with gateway.client() as client:
        while client.v1.payouts.retrieve(payout.id).status == "pending":
            pass
    assert len(gateway.effects()) == 1


def test_lists_come_in_pages_newest_first(gateway: Gateway) -> None:
    made = [gateway.charge(amount=number).id for number in range(1, 6)]
    with gateway.client() as client:
        intents = client.v1.payment_intents
        first = intents.list({"limit": 2})
        assert [intent.id for intent in first.data] == made[:2:-1]
        assert first.has_more
        every = [intent.id for intent in intents.list({"limit": 2}).auto_paging_iter()]
        assert every == made[::-1]
        before = intents.list({"ending_before": made[1], "limit": 2})
        assert [intent.id for intent in before.data] == [made[3], made[2]]
        assert intents.list({"created": {"lt": 1000}}).data == []
        assert len(intents.list({"created": {"gte": 1000}}).data) == 5


def test_search_finds_by_reference_and_lags(gateway: Gateway) -> None:
    mine = gateway.charge(reference="it's mine")
    gateway.charge(reference="other")
    query = {"query": r"metadata['reference']:'it\'s mine' AND status:'succeeded'"}
    with gateway.client() as client:
        intents = client.v1.payment_intents
        assert [found.id for found in intents.search(query).data] == [mine.id]  # type: ignore[arg-type]
        gateway.configure(lookup_lag=3600)
        assert intents.search(query).data == []  # type: ignore[arg-type]
        assert intents.list().data == []
        assert intents.retrieve(mine.id).id == mine.id
        gateway.configure(lookup_lag=0)
        assert len(intents.search(query).data) == 1  # type: ignore[arg-type]
        with pytest.raises(stripe.InvalidRequestError, match="cannot be read"):
            intents.search({"query": "metadata['reference']~'x'"})
    assert gateway.requests()[2]["reference"] == "it's mine"


@pytest.mark.parametrize("key", ["sk_bad", "sk_live_x"])
def test_an_unknown_api_key_is_refused_and_nothing_is_remembered(
    gateway: Gateway, key: str
) -> None:
    client = stripe.StripeClient(key, base_addresses={"api": gateway.url})
    params: Any = {"amount": 1, "currency": "eur", "payment_method": "pm_card_visa"}
    with pytest.raises(stripe.AuthenticationError):
        client.v1.payment_intents.create(params, {"idempotency_key": "k1"})
    assert gateway.charge(key="k1").status == "succeeded"


def test_a_basic_key_will_do_and_none_will_not(gateway: Gateway) -> None:
    url = f"{gateway.url}/v1/refunds"
    assert requests.get(url, auth=("sk_test_x", ""), timeout=5).status_code == 200
    assert requests.get(url, timeout=5).status_code == 401


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"currency": "eur"}, "amount"),
        ({"amount": "1.5", "currency": "eur"}, "amount"),
        ({"amount": 0, "currency": "eur"}, "amount"),
        ({"amount": 10**9, "currency": "eur"}, "amount"),
        ({"amount": 1, "currency": "euro"}, "currency"),
        ({"amount": 1, "currency": "eur", "confirm": "yes"}, "confirm"),
        ({"amount": 1, "currency": "eur", "metadata": "x"}, "metadata"),
        ({"amount": 1, "currency": "eur", "metadata": {"x": "y" * 501}}, "metadata[x]"),
        ({"amount": 1, "currency": "eur", "capture_method": "never"}, "capture_method"),
        ({"amount": 1, "currency": "eur", "payment_method_data": {}}, None),
    ],
)
def test_a_wrong_parameter_is_named_and_the_key_stays_free(
    gateway: Gateway, params: Any, param: str | None
) -> None:
    if param is not None:
        with gateway.client() as client, pytest.raises(stripe.InvalidRequestError) as refused:
            client.v1.payment_intents.create(params, {"idempotency_key": "k1"})
        assert refused.value.param == param
    assert gateway.charge(key="k1").status == "succeeded"


def test_dependencies_are_served_without_a_key(gateway: Gateway) -> None:
    assert requests.get(f"{gateway.url}/deps/rates", timeout=5).json()["base"] == "EUR"
    assert requests.get(f"{gateway.url}/deps/offers", timeout=5).json()["offers"]


def test_an_unknown_path_is_refused(gateway: Gateway) -> None:
    assert requests.get(f"{gateway.url}/v1/nothing", timeout=5).status_code == 404
    assert requests.get(f"{gateway.url}/_sim/nothing", timeout=5).status_code == 404
