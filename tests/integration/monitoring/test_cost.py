"""A scrape costs little, however many keys there are and however often it comes."""

import pytest
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from idempotency import metrics
from tests.integration.admin.test_plans import rows_read
from tests.support.faketime import FakeTime
from tests.support.filled import fill

ROWS = 60_000
MOST = 500
"""Rows that one query may read where some dozen keys of so many are open."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.django_db
def test_no_query_of_a_scrape_reads_what_is_settled() -> None:
    fill(rows=ROWS)
    with CaptureQueriesContext(connection) as queries:
        list(metrics.LedgerCollector().collect())
    read = {query["sql"]: rows_read(query["sql"]) for query in queries.captured_queries}
    assert len(read) == 3
    assert max(read.values()) <= MOST, read


@pytest.mark.django_db
def test_scrapes_within_five_seconds_share_one_look() -> None:
    time = FakeTime()
    collector = metrics.LedgerCollector(clock=time.clock).for_request(
        RequestFactory().get("/metrics")
    )
    with CaptureQueriesContext(connection) as queries:
        list(collector.collect())
        time.pass_(metrics.KEPT - 0.1)
        list(collector.collect())
        assert len(queries) == 3
        time.pass_(0.2)
        list(collector.collect())
        assert len(queries) == 6
