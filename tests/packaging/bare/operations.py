"""What a stranger defers."""

from typing import Any

from django.contrib.auth.models import Group

from idempotency.ledger import Claim
from idempotency.operations import operation


@operation("shop.letter")
def letter(*, claim: Claim, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    Group.objects.create(name=f"letter to {input['to']}")
    return {"sent": input["to"]}
