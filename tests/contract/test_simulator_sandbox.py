"""Sandbox tokens for refunds and payouts: the money's own request is struck, and nothing before it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.contract.simulator_process import Gateway, running


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture
def gateway(process: Gateway) -> Gateway:
    process.control("POST", "reset")
    return process


def post(gateway: Gateway, path: str, **form: object) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        return session.post(
            f"{gateway.url}/v1/{path}", data=form, auth=("sk_test_any", ""), timeout=10
        )


def refund(gateway: Gateway, token: str) -> Any:
    paid = post(
        gateway,
        "payment_intents",
        amount=500,
        currency="eur",
        confirm="true",
        payment_method=token,
    )
    assert paid.json()["status"] == "succeeded", "the charge itself is not struck"
    return post(gateway, "refunds", payment_intent=paid.json()["id"], amount=100)


def payout(gateway: Gateway, account: str) -> Any:
    made = post(gateway, "accounts", external_account=account, type="custom")
    if made.status_code != 200:
        return made
    return post(gateway, "payouts", amount=100, currency="eur", destination=made.json()["id"])


WAYS = {"refund": (refund, "pm_sandbox_refund{}"), "payout": (payout, "acct_sandbox_{}")}


def move(gateway: Gateway, what: str, kind: str) -> Any:
    make, name = WAYS[what]
    return make(gateway, name.format(kind if what == "payout" else kind[0].upper() + kind[1:]))


def moved(gateway: Gateway, what: str) -> int:
    return [effect["kind"] for effect in gateway.effects()].count(what)


@pytest.mark.parametrize("what", WAYS)
def test_each_token_does_what_its_name_says(gateway: Gateway, what: str) -> None:
    refused = move(gateway, what, "refused")
    code = {"refund": "refund_disputed_payment", "payout": "balance_insufficient"}[what]
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
    assert move(gateway, what, "unavailable").status_code == 503
    assert moved(gateway, what) == 0

    with pytest.raises(requests.ConnectionError):
        move(gateway, what, "lostAnswer")
    assert moved(gateway, what) == 1

    began = time.monotonic()
    assert move(gateway, what, "slow").status_code == 200
    assert time.monotonic() - began >= 2

    with pytest.raises(requests.ConnectionError):
        move(gateway, what, "lateSuccess")
    assert moved(gateway, what) == 2, "not yet"
