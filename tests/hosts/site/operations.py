"""What the host defers."""

from typing import Any

from idempotency.ledger import Claim
from idempotency.operations import operation


@operation("site.letter")
def letter(*, claim: Claim, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {"sent": input["to"]}
