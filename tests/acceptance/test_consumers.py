"""A consumer of the API, on real processes: the sandbox shows each state, and no client does anything twice."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
import requests

from idempotency.client import AsyncClient, Client, Operation, SqliteIntents
from tests.support.stack import Stack

pytestmark = pytest.mark.slow

AUTHORIZATION = "Token demo-merchant-a"
PROGRAM = Path(__file__).with_name("client_process.py")


def order(number: str, source: str = "pm_card_visa") -> dict[str, Any]:
    return {"order_id": number, "amount": 1200, "currency": "EUR", "source": source}


def charges(stack: Stack) -> list[dict[str, Any]]:
    """Return the sends that reached the gateway."""
    return [each for each in stack.simulate("GET", "/_sim/requests") if each["method"] == "POST"]


@pytest.fixture(scope="module")
def kept_stack(made_stack: Stack) -> Stack:
    made_stack.environment |= {
        "IDEMPOTENCY_RECONCILE_EVERY": "1",
        "IDEMPOTENCY_WAKE_EVERY": "1",
        # Longer than what comes late in the sandbox takes: then a look-up that finds nothing is believed.
        "PAYMENTS_GATEWAY_SETTLING_TIME": "8",
        # What the sandbox breaks on purpose is not to open the circuit here.
        "PAYMENTS_BREAKER_MIN_CALLS": "1000",
    }
    made_stack.start("simulator", "web", "worker", "beat")
    return made_stack


@pytest.fixture
def stack(shared_stack: Stack) -> Stack:
    return shared_stack


@pytest.fixture
def client(stack: Stack, tmp_path: Path) -> Iterator[Client]:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = AUTHORIZATION
        yield Client(stack.web_url, http=session, store=SqliteIntents(tmp_path / "intents.db"))


def test_the_sandbox_shows_each_state_without_a_control_route(stack: Stack, client: Client) -> None:
    def post(key: str, source: str) -> tuple[int, str]:
        answer = stack.post("/api/payments/", order(key, source), key=key)
        return answer.status_code, answer.json().get("code", "")

    assert post("k1", "pm_card_chargeDeclined") == (402, "payment-declined")
    assert post("k2", "pm_sandbox_unavailable") == (503, "gateway-unavailable")
    assert post("k3", "pm_sandbox_lostAnswer") == (504, "outcome-unknown")
    assert post("k4", "pm_sandbox_lateSuccess") == (504, "outcome-unknown")

    first: list[tuple[int, str]] = []
    before = len(charges(stack))
    slow = Thread(target=lambda: first.append(post("k5", "pm_sandbox_slow")))
    slow.start()
    stack.wait_until(lambda: len(charges(stack)) > before, "the slow one is under way")
    assert post("k5", "pm_sandbox_slow") == (409, "in-progress")
    slow.join()
    assert first == [(201, "")]

    for key, source in (("k3", "pm_sandbox_lostAnswer"), ("k4", "pm_sandbox_lateSuccess")):

        def done(key: str = key, source: str = source) -> bool:
            return post(key, source) == (201, "")

        stack.wait_until(done, f"{source} is found out")
    assert len(stack.effects()) == 3


@pytest.mark.sampled(3)
@pytest.mark.timeout(240)
def test_the_sandbox_shows_each_end_of_deferred_work(stack: Stack, client: Client) -> None:
    """Refunds by the card that was charged, payouts by the account that is paid."""
    kinds = ("refused", "slow", "lostAnswer", "lateSuccess", "unavailable")
    promised = {}
    for kind in kinds:
        card = f"pm_sandbox_refund{kind[0].upper()}{kind[1:]}"
        paid = stack.post("/api/payments/", order(kind, card), key=kind).json()
        refunds = f"/api/payments/{paid['id']}/refunds/"
        promised["refund", kind] = stack.post(refunds, {"amount": 100}, key=kind)
        payout = {"amount": 100, "currency": "EUR", "destination": f"acct_sandbox_{kind}"}
        promised["payout", kind] = stack.post("/api/payouts/", payout, key=kind)
    seen: dict[tuple[str, str], set[str]] = {name: set() for name in promised}

    def ended() -> dict[tuple[str, str], str]:
        operations = {
            name: stack.get(each.headers["Location"]).json() for name, each in promised.items()
        }
        for name, operation in operations.items():
            seen[name].add(operation["state"])
        if not all(operation["done"] for operation in operations.values()):
            return {}
        return {
            name: operation["error"]["code"]
            if "error" in operation
            else operation["result"]["status"]
            for name, operation in operations.items()
        }

    expected = {(what, kind): "succeeded" for what in ("refund", "payout") for kind in kinds}
    expected |= {(what, "unavailable"): "gave-up" for what in ("refund", "payout")}
    expected |= {("refund", "refused"): "refund-refused", ("payout", "refused"): "refused"}
    assert stack.wait_until(ended, "all operations are done", seconds=180) == expected
    for what in ("refund", "payout"):
        assert "unknown" in seen[what, "lostAnswer"] | seen[what, "lateSuccess"]
    moved = [effect["kind"] for effect in stack.effects()]
    assert sorted(moved) == ["charge"] * 5 + ["payout"] * 3 + ["refund"] * 3


def test_a_client_waits_until_the_outcome_is_known(stack: Stack, client: Client) -> None:
    answer = client.post(
        "/api/payments/", json=order("1", "pm_sandbox_lostAnswer"), intent="charge 1"
    )
    assert (answer.status, answer.replayed) == (201, True)
    assert client.post(
        "/api/payments/", json=order("1", "pm_sandbox_lostAnswer"), intent="charge 1"
    ).remembered
    assert len(stack.effects()) == 1


def test_deferred_work_is_followed_to_its_end(stack: Stack, client: Client) -> None:
    seen: list[Operation] = []
    payout = {"amount": 500, "currency": "EUR", "destination": "acct_1a2b3c"}
    promised = client.post("/api/payouts/", json=payout, intent="payout 1")
    operation = client.follow(promised, progress=seen.append)
    assert (promised.status, operation.done, operation.error) == (202, True, None)
    assert seen[-1] == operation
    refused = client.follow(
        client.post("/api/payouts/", json=payout | {"destination": "acct_invalid"}, intent="2")
    )
    assert refused.error is not None
    assert refused.error["code"] == "payout-refused"
    assert [effect["kind"] for effect in stack.effects()] == ["payout"]


def test_a_coroutine_pays_once_too(stack: Stack, tmp_path: Path) -> None:
    """Ten tasks with one intent."""

    async def together() -> set[str]:
        headers = {"Authorization": AUTHORIZATION}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            client = AsyncClient(stack.web_url, http=http, store=SqliteIntents(tmp_path / "i.db"))
            answers = await asyncio.gather(
                *(
                    client.post("/api/payments/", json=order("9"), intent="charge 9")
                    for _ in range(10)
                )
            )
        return {answer.json()["id"] for answer in answers}

    assert len(asyncio.run(together())) == 1
    assert len(stack.effects()) == 1


def test_a_client_killed_in_mid_operation_goes_on_with_the_same_key(
    stack: Stack, tmp_path: Path
) -> None:
    def start() -> subprocess.Popen[str]:
        words = [sys.executable, str(PROGRAM), stack.web_url, str(tmp_path / "intents.db")]
        return subprocess.Popen(
            [*words, "pm_sandbox_slow"],
            env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109 - the checkout
            stdout=subprocess.PIPE,
            text=True,
        )

    killed = start()
    stack.wait_until(lambda: charges(stack), "the charge is under way")
    killed.send_signal(signal.SIGKILL)
    said, _ = killed.communicate()
    assert (killed.returncode, said) == (-signal.SIGKILL, "")

    again = start()
    said, _ = again.communicate(timeout=30)
    assert again.returncode == 0
    assert said.startswith("201 True ")
    assert len(stack.effects()) == 1
