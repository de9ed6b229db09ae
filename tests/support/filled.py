"""A ledger with many rows, made by the database itself in seconds: what a busy month leaves behind."""

from django.db import connection, transaction

# Per million, spread over 30 days: nearly all is settled and quiet, and the rest is what staff look for.
_FILL = """
INSERT INTO idempotency_key (
    id, scope, operation, key, generation, fingerprint, fingerprint_parts, fingerprint_version, fingerprint_secret,
    accepted, request_id, traceparent, state, token, lease_until, due_at, deferred, call_begun, journal_version,
    created_at, claimed_at, status, body, content_type, headers, note, settled_at, settled_by, evidence,
    unknown_since, unfinished, watched, next_lookup_at, lookups, needs_person_since, needs_person_reason,
    resource, reference, summary)
SELECT
    id, 'tenant ' || n % 50, 'payments.create', 'key-' || n, 1, '\\x00', '', 1, 'test',
    '', 'req-' || n, '', state, 1,
    CASE WHEN state = 'in_progress' AND n % 20000 <> 2 THEN now() + interval '30 s' END,
    CASE WHEN state = 'in_progress' AND n % 20000 = 2 THEN at END,
    state = 'in_progress' AND n % 20000 = 2 OR n % 20 = 0 AND state = 'completed', true, 1,
    at, at, CASE WHEN state = 'completed' THEN 201 END, CASE WHEN state = 'completed' THEN body END,
    CASE WHEN state = 'completed' THEN 'application/json' END, '{{}}', '',
    CASE WHEN state IN ('completed', 'released') THEN at END,
    'request', '{{}}', CASE WHEN state = 'unknown' THEN at END, false, false,
    CASE WHEN state = 'unknown' THEN now() END, 3, CASE WHEN n % 20000 = 3 THEN at END, '',
    '/api/payments/' || n || '/', 'order-' || n, 'Charge of 12.00 UAH for order ' || n
FROM (
    SELECT n, at, decode(repeat('7b7d', 120), 'hex') AS body,
        (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
            || '8' || substr(md5(n::text), 4, 15))::uuid AS id,
        CASE WHEN n % 20000 IN (1, 2) THEN 'in_progress' WHEN n % 20000 = 3 THEN 'unknown'
             WHEN n % 5000 = 4 THEN 'released' ELSE 'completed' END AS state
    FROM (
        SELECT n, now() - (({rows} - n)::float / {rows}) * interval '30 days' AS at
        FROM generate_series({first}, {last}) AS n
    ) AS moments
) AS rows
RETURNING id, key, state, deferred, created_at
"""

_STEPS = """
INSERT INTO idempotency_step (
    key_id, generation, name, rotation, downstream, downstream_key, payload, subject, keyed, settling_seconds,
    first_send_at, resend_until, applied_at, reference, result)
SELECT id, 1, 'charge', 0, 'stripe', 'down-' || key, '\\x7b7d', '', true, 20,
    created_at, created_at, created_at, 'pi-' || key, '{}'
FROM filled WHERE state = 'completed'
"""

_WORK = """
INSERT INTO idempotency_operation (
    id, key_id, name, input, created_at, updated_at, attempts, cycle_attempts, max_attempts, last_error, error)
SELECT id, id, 'payments.refund', '{}', created_at, created_at, 1, 1, 3, '',
    CASE WHEN key LIKE '%000' THEN '{"code": "gave-up"}'::jsonb END
FROM filled WHERE deferred
"""

_EVENTS = """
INSERT INTO idempotency_event (key_id, at, kind, actor, reason, detail, alarming)
SELECT id, created_at, 'asked', 'ops', '', '{}', key LIKE '%0000' FROM filled WHERE key LIKE '%0'
"""


_BATCH = 10_000
"""Rows of one statement: few enough for a busy machine to answer in time."""


def fill(*, rows: int) -> None:
    """Fill the tables and let the planner know about it."""
    with transaction.atomic(), connection.cursor() as cursor:
        for first in range(1, rows + 1, _BATCH):
            last = min(first + _BATCH - 1, rows)
            keys = _FILL.format(rows=int(rows), first=first, last=last)
            cursor.execute(
                f"WITH filled AS ({keys}), steps AS ({_STEPS}), work AS ({_WORK}) {_EVENTS}"
            )
        for table in ("key", "step", "sender", "operation", "event"):
            cursor.execute(f"ANALYZE idempotency_{table}")
