"""A kit for a host's own suite: every POST sent twice, lost answers, interruptions, and a clock that is moved.

    pytest_plugins = ["idempotency.testing.plugin"]      # the fixtures; or use what is below without pytest

    def test_a_payment_is_made_once(repeating_client):
        assert repeating_client.post("/api/payments/", order).status_code == 201     # sent twice, compared

What works where:

| | TestCase, `django_db` | TransactionTestCase, `django_db(transaction=True)` |
|---|---|---|
| `RepeatingClient`, `LosingClient`, `assert_replayed`, `pass_time` | yes | yes |
| `interrupt_at` | yes; what was committed before it is only a savepoint | yes |
| `together` | no: other threads do not see the test's transaction | yes |
| work done by `on_commit`, e.g. the nudge to a worker | no | yes |

A TransactionTestCase empties every table after each test, which the ledger's history refuses: call `allow_truncation`
once per test database. The plugin does it, and so does `idempotency.testing.runner.Runner`.
"""

from idempotency.testing.asserting import assert_replayed
from idempotency.testing.clients import AnswerLost, LosingClient, RepeatingClient
from idempotency.testing.database import allow_truncation, pass_time
from idempotency.testing.interrupting import interrupt_at
from idempotency.testing.threads import together

__all__ = [
    "AnswerLost",
    "LosingClient",
    "RepeatingClient",
    "allow_truncation",
    "assert_replayed",
    "interrupt_at",
    "pass_time",
    "together",
]
