"""A lease that has run out: found among many, and for one key alone (R11)."""

import pytest
from django.db import connection
from django.db.models.functions import Now

from idempotency.ledger import settlement
from idempotency.models import Key
from tests.support.filled import fill
from tests.support.plans import most_passed_over, plans_of

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_lapsed_key_is_not_searched_for_among_all_of_them() -> None:
    """By the statistics none has lapsed; after an outage each repeat of one would read all the others."""
    fill(rows=5_000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) idempotency_key")
        cursor.execute(
            "UPDATE idempotency_key SET state = 'in_progress', lease_until = now() - interval '1 s', status = NULL, "
            "body = NULL, content_type = NULL, settled_at = NULL, settled_by = '' "
            "WHERE id IN (SELECT id FROM idempotency_key WHERE state = 'completed' ORDER BY id LIMIT 300)"
        )
    key = Key.objects.filter(lease_until__lt=Now()).latest("id")

    (plan,) = plans_of(lambda: settlement.lapse(connection=connection, limit=1, key_id=key.id))
    assert most_passed_over(plan) < 10, plan
    assert settlement.lapse(connection=connection, limit=1, key_id=key.id) == [key.id]
