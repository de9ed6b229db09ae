"""The README's kill demo, with shorter times: a process killed after the charge heals by itself."""

import pytest
import requests

from tests.docs.blocks import blocks
from tests.support.stack import Stack

ORDER = {"order_id": "order-2", "amount": 2500, "currency": "EUR", "source": "pm_card_visa"}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_process_killed_after_the_charge_heals_by_itself(live_stack: Stack) -> None:
    live_stack.environment |= {
        "IDEMPOTENCY_REQUEST_BUDGET": "10",
        "PAYMENTS_GATEWAY_ATTEMPTS": "2",
        "PAYMENTS_GATEWAY_SETTLING_TIME": "2",
        "IDEMPOTENCY_LEASE": "13",
        "IDEMPOTENCY_OPERATION_TIME_LIMIT": "12",
        "IDEMPOTENCY_RECONCILE_EVERY": "1",
    }
    live_stack.start("simulator", "web", "worker", "beat", environment=armed())
    with pytest.raises(requests.ConnectionError):
        live_stack.post(
            "/api/payments/", ORDER, key="kill-1", headers={"X-Fault-Point": "after_call"}
        )

    seen: list[tuple[int, str]] = []

    def settled() -> bool:
        answer = live_stack.post("/api/payments/", ORDER, key="kill-1")
        what = (answer.status_code, answer.json().get("code", "paid"))
        if what not in seen:
            seen.append(what)
        return answer.headers.get("Idempotent-Replayed") == "true"

    live_stack.wait_until(settled, "the payment is found and finished", seconds=90)
    assert seen[0] == (409, "in-progress")
    assert seen[-1] == (201, "paid")
    assert set(seen[1:-1]) <= {(409, "outcome-unknown")}
    assert [effect["amount"] for effect in live_stack.effects()] == [2500]


def armed() -> dict[str, str]:
    """Return what the README puts before `make run`."""
    (block,) = blocks(name="kill")
    name, _, value = block.body.split()[0].partition("=")
    return {name: value}
