"""The deployment behind PgBouncer in transaction mode, which crashes (R8, R19)."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from django.contrib.auth.models import User
from django.db import connection

from tests.faults.test_database_restarts import SETTLED_SOON, session_of
from tests.hosts.site.pgbouncer import PgBouncer, installed
from tests.support.filled import fill
from tests.support.stack import Stack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(150),
    pytest.mark.skipif(not installed(), reason="pgbouncer is not installed"),
]
CARD = {"amount": 500, "currency": "EUR", "source": "pm_card_visa"}
TWINS = 3


@pytest.fixture
def pooler(live_stack: Stack, tmp_path: Path) -> Iterator[PgBouncer]:
    direct = dict(connection.settings_dict)
    pooler = PgBouncer(home=tmp_path, database=direct)
    with pooler as through:
        live_stack.environment |= {
            "DATABASE_URL": live_stack.environment["DATABASE_URL"].replace(
                f":{direct['PORT']}/", f":{through['PORT']}/"
            ),
            "DATABASE_POOLED": "1",
        } | SETTLED_SOON
        yield pooler


def test_r8_r19_twins_are_paid_once_while_it_crashes(live_stack: Stack, pooler: PgBouncer) -> None:
    live_stack.start("simulator", "web")
    keys = [f"k{number}" for number in range(60)]
    seen: Counter[int] = Counter()

    def pay(key: str) -> int:
        return live_stack.post("/api/payments/", CARD | {"order_id": key}, key=key).status_code

    with ThreadPoolExecutor(TWINS) as threads:
        for number, key in enumerate(keys):
            together = threading.Barrier(TWINS)

            def twin(key: str = key, together: threading.Barrier = together) -> int:
                together.wait(30)
                return pay(key)

            twins = [threads.submit(twin) for _ in range(TWINS)]
            if number % 10 == 5:
                pooler.kill()
            seen.update(each.result() for each in twins)

    assert set(seen) <= {201, 409, 503, 504}
    live_stack.start("worker", "beat")
    for key in keys:
        live_stack.wait_until(lambda key=key: pay(key) == 201, f"{key} is paid")  # type: ignore[misc]
    paid = Counter(effect["reference"] for effect in live_stack.effects())
    assert (len(paid), set(paid.values())) == (len(keys), {1})


def test_a_list_is_exported_side_by_side(live_stack: Stack, pooler: PgBouncer) -> None:
    """A server-side cursor would be of one server's session, and its next rows are asked of another's."""
    live_stack.start("simulator", "web")
    fill(rows=5_000)
    staff = User.objects.create_superuser("staff")
    cookies = {"sessionid": session_of(staff)}
    address = f"{live_stack.web_url}/admin/idempotency/key/export/?state=all"

    def export(_: int) -> requests.Response:
        return requests.get(address, cookies=cookies, timeout=60)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(export, range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert {answer.text.count("\n") for answer in answers} == {5_001}
