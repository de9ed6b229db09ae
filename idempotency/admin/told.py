"""Which problem the caller's program was told: its code is nobody's secret, and says why better than a status."""

import json

from idempotency.conf import conf
from idempotency.exceptions import Misuse
from idempotency.http import problem
from idempotency.ledger import sealing
from idempotency.models import Key


def stored_problem(key: Key) -> str:
    """Return the code of the problem that is the key's stored answer, or ""; of a code that is published only."""
    if key.body is None or (key.status or 0) < 400:
        return ""
    try:
        answer = json.loads(sealing.unseal(key.body))
    except (Misuse, ValueError):
        return ""
    code = answer.get("code") if isinstance(answer, dict) else None
    return code if isinstance(code, str) and code in problem.catalogue() else ""


def address_of(code: str) -> str:
    """Return the page of a problem, or "" where there is none."""
    return f"{conf.PROBLEM_BASE}{code}/" if code in problem.catalogue() else ""
