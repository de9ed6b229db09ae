"""The API as its description says: driven by schemathesis on real processes, with its checks and one of our own."""

import random
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from idempotency.testing import assert_replayed
from tests.support.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CONFIG = Path(__file__).parents[2] / "schemathesis.toml"
TOKEN = "Token demo-merchant-a"
KEY = "Idempotency-Key"
TWINS = 4

# Statuses of what was refused before it began: the key is free, and a repeat is refused again.
REFUSED = {400, 404, 415}
# Nothing else may come of a request that fits the description.
EXPECTED = {201, 202, 402, 409, *REFUSED}
SOURCES = ["pm_card_visa", "pm_card_chargeDeclined", "pm_card_processing", "pm_nobody"]


@pytest.fixture
def stack(live_stack: Stack) -> Stack:
    # Unknown tokens are refusals of the gateway, not failures; yet nothing is to open the circuit here.
    live_stack.environment["PAYMENTS_BREAKER_MIN_CALLS"] = "100000"
    live_stack.start("simulator", "web")
    return live_stack


def test_schemathesis_finds_nothing(stack: Stack) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", f"--config-file={CONFIG}"),
            *("run", f"{stack.web_url}/api/schema/"),
            *("-H", f"Authorization: {TOKEN}"),
            *("--checks", "all", "--max-examples", "15", "--seed", "1"),
            *("--phases", "examples,coverage,fuzzing", "--no-color"),
        ],
        capture_output=True,
        text=True,
        cwd=stack.home,
        timeout=280,
        check=False,
    )
    print(run.stdout[-12_000:], run.stderr[-2_000:])
    assert run.returncode == 0


# -- our own check: twice, in parallel, and with another body ----------------------------------------------------------


class Known:
    """What really exists, so that generated requests reach the work behind the validation."""

    def __init__(self, stack: Stack) -> None:
        body = {"order_id": "1", "amount": 100, "currency": "UAH", "source": "pm_card_visa"}
        self.payment = stack.post("/api/payments/", body, key="known").json()["id"]
        self._random = random.Random(1)
        self.accounts = [each["id"] for each in stack.get("/api/accounts/").json()["results"]]

    def fill(self, case: Any) -> None:
        """Let the generated request name what exists, more often than not."""
        draw = self._random.choice
        if "id" in case.path_parameters:
            case.path_parameters["id"] = draw([self.payment, self.payment, str(uuid.uuid4())])
        real = {
            "from_account": self.accounts[:1],
            "to_account": self.accounts[1:],
            "payment": [self.payment],
            "source": SOURCES,
            "email": ["a@example.com"],
        }
        for name, values in real.items():
            if name in case.body and self._random.random() < 0.8:
                case.body[name] = draw(values)
        if "amount" in case.body:
            case.body["amount"] = self._random.randint(1, 60)


def operations(stack: Stack) -> Iterator[Any]:
    schema = schemathesis.openapi.from_url(f"{stack.web_url}/api/schema/")
    found: Any
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.method.upper() not in ("GET", "HEAD", "OPTIONS"):
            yield operation


def send(case: Any, key: str) -> requests.Response:
    case.headers = {**(case.headers or {}), KEY: key}
    with requests.Session() as session:
        session.trust_env = False
        answer = case.as_transport_kwargs(base_url=case.operation.base_url)
        answer["headers"] = {**answer["headers"], KEY: key, "Authorization": TOKEN}
        # The session's cookie is another way to log in, and a made-up one is taken back.
        answer["headers"].pop("Cookie", None)
        answer["cookies"] = None
        return session.request(**answer, timeout=20, allow_redirects=False)


def check_idempotency(case: Any, other: Any) -> str:
    """Send a request twice, in parallel, and with another body; return what came of it."""
    key = str(uuid.uuid4())
    first, second = send(case, key), send(case, key)
    assert first.status_code in EXPECTED, (first.status_code, first.text)
    if first.status_code in REFUSED:
        assert second.status_code == first.status_code, second.text
        return "refused"
    assert_replayed(first, second)

    if case.body != other.body:
        reused = send(other, key)
        assert (reused.status_code, reused.json()["code"]) == (422, "key-reused"), reused.text
        assert_replayed(first, send(case, key))

    key = str(uuid.uuid4())
    with ThreadPoolExecutor(TWINS) as pool:
        twins = list(pool.map(lambda _: send(case, key), range(TWINS)))
    done = [each for each in twins if each.json().get("code") != "in-progress"]
    assert len({(each.status_code, each.content) for each in done}) == 1, [t.text for t in twins]
    assert sum("Idempotent-Replayed" not in each.headers for each in done) == 1
    assert all("Retry-After" in each.headers for each in twins if each not in done)
    return str(first.status_code)


def generated(operation: Any, *, count: int = 24) -> list[Any]:
    """Return requests that fit the description. Made first and sent later: nothing is to be shrunk over a network."""
    cases: list[Any] = []

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy())
    def collect(case: Any) -> None:
        cases.append(case)

    collect()
    return cases


def test_every_unsafe_operation_twice_in_parallel_and_with_another_body(stack: Stack) -> None:
    """The description's own words make the requests; the gateway's record counts the effects."""
    known = Known(stack)
    seen: dict[str, Counter[str]] = {}
    for operation in operations(stack):
        keyed = any(each.name == KEY for each in operation.iter_parameters())
        repeatable = operation.path.endswith("/cancel/") or "/webhook-endpoints/" in operation.path
        assert keyed or repeatable, f"{operation.label} takes no key"
        # What is sent again needs a delivery that has ended: tests/integration/completion/test_redelivering.py.
        if not keyed or repeatable:
            continue
        met = seen.setdefault(operation.label, Counter())
        cases = generated(operation)
        for case, other in zip(cases[::2], cases[1::2], strict=False):
            known.fill(case)
            known.fill(other)
            other.path_parameters = dict(case.path_parameters)
            met[check_idempotency(case, other)] += 1
    print(seen)
    assert len(seen) == 5
    for label, met in seen.items():
        assert set(met) & {"201", "202"}, f"{label} never succeeded: {met}"
    effects = stack.effects()
    assert len({effect["reference"] for effect in effects}) == len(effects)
