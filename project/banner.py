"""What `make run` prints when everything is up."""

import secrets
from pathlib import Path


def banner(*, port: int, simulator_port: int, logs: Path) -> str:
    """Return addresses, accounts, and two commands to try."""
    address = f"http://127.0.0.1:{port}"
    # New at each start, so that the first command is a first time.
    name = secrets.token_hex(3)
    curl = (
        f"  curl -i {address}/api/payments/ -H 'Authorization: Token demo-merchant-a' \\\n"
        f"    -H 'Content-Type: application/json' -H 'Idempotency-Key: \"try-{name}\"' \\\n"
        f'    -d \'{{"order_id": "order-{name}", "amount": 1999, "currency": "EUR", '
        f'"source": "pm_card_visa"}}\''
    )
    return f"""
Ready.

  API        {address}/api/payments/
  Docs       {address}/api/docs/
  Console    {address}/admin/     admin/admin, support/support (view only), ops/ops (payments)
  Readiness  {address}/readyz/    metrics: {address}/metrics
  Gateway    http://127.0.0.1:{simulator_port}/_sim/effects (a simulator: what was really paid)
  Tokens     demo-merchant-a, demo-merchant-b
  Logs       {logs}

Pay once:

{curl}

Ask again, as a client does that heard nothing. It is the same payment, and the answer says
Idempotent-Replayed: true

{curl}

Ctrl-C stops everything.
"""
