"""PostgreSQL goes away and comes back under load: no answer is a page, and no money moves twice (R19)."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import psycopg
import pytest
import requests
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.db import connection

from tests.support.databases import login
from tests.support.servers import servers
from tests.support.stack import Stack

CSRF = "c" * 32
CARD = {"amount": 500, "currency": "EUR", "source": "pm_card_visa"}
SETTLED_SOON = {
    "IDEMPOTENCY_REQUEST_BUDGET": "4",
    "PAYMENTS_GATEWAY_ATTEMPTS": "2",
    "PAYMENTS_GATEWAY_TIMEOUT": "1",
    "PAYMENTS_GATEWAY_SETTLING_TIME": "1",
    "IDEMPOTENCY_LEASE": "8",
    "IDEMPOTENCY_RECONCILE_EVERY": "1",
}
"""The environment of a deployment that settles within seconds what is unknown."""


@dataclass
class Caller:
    """One thread that asks one thing again and again, and what it was answered."""

    ask: Callable[[int], requests.Response]
    answers: list[requests.Response] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            self.answers.append(self.ask(number))


@contextmanager
def crowd(callers: list[Caller]) -> Iterator[None]:
    """Let all of them ask while the block runs."""
    stop = threading.Event()
    threads = [threading.Thread(target=caller.run, args=(stop,)) for caller in callers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def session_of(user: User) -> str:
    """Return the key of a session in which the user is logged in."""
    store = import_module(settings.SESSION_ENGINE).SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def callers_of(stack: Stack) -> list[Caller]:
    """Return callers of every kind: by token and by session, reading, paying, moving money, promising."""
    user = User.objects.get(auth_token__key="demo-merchant-a")
    cookies = {"sessionid": session_of(user), "csrftoken": CSRF}
    keys = itertools.count()

    def by_token(path: str, body: Callable[[int], Any] | None = None) -> Caller:
        def ask(_: int) -> requests.Response:
            number = next(keys)
            if body is None:
                return stack.get(path)
            return stack.post(path, body(number), key=f"t{number}")

        return Caller(ask)

    def by_session(number: int) -> requests.Response:
        return requests.post(
            f"{stack.web_url}/api/payments/",
            json=CARD | {"order_id": f"s{number}"},
            cookies=cookies,
            headers={"Idempotency-Key": f"s{number}", "X-CSRFToken": CSRF},
            timeout=30,
        )

    def read_by_session(_: int) -> requests.Response:
        return requests.get(f"{stack.web_url}/api/payments/", cookies=cookies, timeout=30)

    return [
        by_token("/api/payments/", lambda number: CARD | {"order_id": f"t{number}"}),
        by_token("/api/payments/", lambda number: CARD | {"order_id": f"t{number}"}),
        by_token(
            "/api/payouts/", lambda _: {"amount": 5, "currency": "EUR", "destination": "acct_1"}
        ),
        by_token("/api/payments/"),
        by_token("/api/operations/00000000-0000-0000-0000-000000000000/"),
        by_token("/api/nowhere/"),
        Caller(by_session),
        Caller(read_by_session),
    ]


def end_backends(times: int) -> None:
    """End every backend of the web, again and again, wherever each is just then."""
    pauses = random.Random(times)
    with psycopg.connect(**login(), autocommit=True) as killer:
        for _ in range(times):
            killer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'idempotency-ledger-web'"
            )
            time.sleep(pauses.uniform(0.02, 0.4))


def restart(signal: str) -> None:
    """Stop the server, `fast` or `immediate`, and start it again."""
    assert servers.postgres is not None
    connection.close()
    if signal == "immediate":
        servers.postgres.insist()
    else:
        servers.postgres.stop()
    time.sleep(0.5)
    servers.postgres.start()


def assert_all_are_answers(callers: list[Caller]) -> Counter[tuple[int, str]]:
    seen: Counter[tuple[int, str]] = Counter()
    for caller in callers:
        for answer in caller.answers:
            kind = answer.headers["Content-Type"]
            assert kind in ("application/json", "application/problem+json"), (
                answer.status_code,
                answer.text[:3000],
            )
            code = answer.json().get("code", "") if answer.status_code >= 400 else ""
            seen[answer.status_code, code] += 1
            assert answer.status_code != 500, answer.text[:3000]
    return seen


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(servers.postgres is None, reason="the server is somebody else's"),
]


@pytest.mark.timeout(180)
def test_a_database_that_comes_and_goes(live_stack: Stack) -> None:
    come_and_go(live_stack, rounds=1, kills=5)


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_database_that_comes_and_goes_for_minutes(live_stack: Stack) -> None:
    come_and_go(live_stack, rounds=10, kills=30)


def come_and_go(stack: Stack, *, rounds: int, kills: int) -> None:
    stack.environment |= SETTLED_SOON
    stack.start("simulator")
    stack.start_web(workers=2)
    callers = callers_of(stack)
    with crowd(callers):
        for _ in range(rounds):
            end_backends(kills)
            restart("fast")
            end_backends(kills)
            restart("immediate")
    seen = assert_all_are_answers(callers)
    assert seen[503, "ledger-unavailable"] > 0
    stack.start("worker", "beat")
    assert_each_was_paid_once(stack, callers)


def assert_each_was_paid_once(stack: Stack, callers: list[Caller]) -> None:
    """Send every payment again until it is settled; then compare with what the gateway did."""
    payments = [
        answer.request
        for caller in callers
        for answer in caller.answers
        if answer.request.method == "POST" and str(answer.request.url).endswith("/payments/")
    ]
    for request in payments:
        request.headers.pop("Connection", None)
        stack.wait_until(
            lambda request=request: requests.Session().send(request, timeout=30).status_code == 201,  # type: ignore[misc]
            f"{request.headers['Idempotency-Key']} is paid",
        )
    paid = [effect["reference"] for effect in stack.effects() if effect["kind"] == "charge"]
    assert len(paid) == len(set(paid)) == len(payments)
