"""No page's work grows with the table: each of its queries reads a bounded number of rows."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from idempotency.models import Event, Key
from tests.integration.admin.conftest import Login
from tests.support.filled import fill

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(300)]

ROWS = 200_000
# The chart reads at most 250 rows of each quarter of an hour, twice; a counted list at most 10,001.
MOST = 49_000

KEYS = reverse("admin:idempotency_key_changelist")
WORK = reverse("admin:idempotency_operation_changelist")
EVENTS = reverse("admin:idempotency_event_changelist")
STATES = (
    "open",
    "person",
    "unknown",
    "running",
    "waiting",
    "watched",
    "released",
    "completed",
    "all",
)
PAGES = [
    reverse("admin:idempotency_heartbeat_changelist"),
    *(f"{KEYS}?state={state}" for state in STATES),
    *(
        f"{KEYS}?state={state}&seen={age}"
        for state in ("open", "completed", "released", "all")
        for age in ("hour", "day", "before-day")
    ),
    f"{KEYS}?state=completed&p=150",
    *(
        f"{KEYS}?q={term}"
        for term in (
            "key-777",
            "order-777",
            "req-777",
            "777",
            "pi-key-777",
            "down-key-777",
            "nothing",
        )
    ),
    *(
        f"{WORK}?state={state}"
        for state in ("open", "waiting", "running", "unknown", "failed", "all")
    ),
    f"{WORK}?q=order-780",
    EVENTS,
    f"{EVENTS}?alarming=yes",
    f"{EVENTS}?alarming=open",
    f"{KEYS}?q=order+order-777",
]


def test_no_query_grows_with_the_table(login: Login) -> None:
    fill(rows=ROWS)
    client = login("engineers")
    key, alarm = Key.objects.get(key="key-777"), Event.objects.filter(alarming=True).latest("pk")
    pages = (
        *PAGES,
        reverse("admin:idempotency_key_change", args=(key.pk,)),
        reverse("admin:idempotency_event_change", args=(alarm.pk,)),
    )
    for address in pages:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200, address
        for query in queries.captured_queries:
            if "idempotency_" in query["sql"] and query["sql"].startswith(
                ("SELECT", "(SELECT", "\nSELECT")
            ):
                read = rows_read(query["sql"])
                assert read <= MOST, (address, read, query["sql"][:300])


def test_what_is_searched_is_found(login: Login) -> None:
    fill(rows=1_000)
    client = login("support")
    for term in ("key-777", "order-777", "req-777", "777", "pi-key-777", "down-key-777"):
        assert "Charge of 12.00 UAH for order 777" in client.get(KEYS, {"q": term}).content.decode()


def test_a_count_stops_where_nobody_reads_on(login: Login) -> None:
    fill(rows=10_500)
    client = login("support")
    assert "10,000+ idempotency keys" in client.get(f"{KEYS}?state=completed").content.decode()


def rows_read(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}")
        (plan,) = cursor.fetchone()
    parsed = json.loads(plan) if isinstance(plan, str) else plan
    return _read(parsed[0]["Plan"])


def _read(node: dict[str, Any]) -> int:
    own = 0
    if "Scan" in node["Node Type"] and "Relation Name" in node:
        each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        own = round(each * node["Actual Loops"])
    return own + sum(_read(child) for child in node.get("Plans", ()))
