"""A host that keeps Celery's results, in a store that dies: no nudge waits for it, no work is lost (celery#8588)."""

import time
from pathlib import Path

import pytest

from project.embedded import Store
from tests.faults.operations.conftest import key_of, work_of
from tests.support.stack import Stack

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]
PAYOUT = {"amount": 700, "currency": "EUR", "destination": "acct_1Tests"}


def test_8588_a_result_backend_that_dies(stack: Stack, tmp_path: Path) -> None:
    results = Store(home=tmp_path / "results", durable=False)
    results.start()
    stack.environment |= {
        "DJANGO_SETTINGS_MODULE": "tests.support.poison.keeping_results",
        "TEST_RESULT_BACKEND": results.url,
    }
    stack.start("simulator", "web", "worker", "beat")
    operations = [promised(stack, "alive")]
    stack.wait_until(lambda: key_of(operations[0]).state == "completed", "it is done")

    results.kill()
    operations += [promised(stack, f"dead-{number}") for number in range(5)]
    stack.wait_until(
        lambda: {key_of(each).state for each in operations} == {"completed"}, "all are done"
    )
    assert {work_of(each).attempts for each in operations} == {1}
    assert len(stack.effects()) == len(operations)


def promised(stack: Stack, key: str) -> str:
    began = time.monotonic()
    answer = stack.post("/api/payouts/", PAYOUT, key=key)
    assert answer.status_code == 202
    assert time.monotonic() - began < 2
    return str(answer.json()["id"])
