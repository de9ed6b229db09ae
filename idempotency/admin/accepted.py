"""Which keys were answered with a refusal after a call of theirs was accepted: asked once for all of them."""

import uuid
from collections.abc import Iterable

from django.db.models import F

from idempotency.conf import conf
from idempotency.models import Key, Step
from idempotency.types import State


def accepted(keys: Iterable[Key]) -> set[uuid.UUID]:
    """Return the ids of those of which the other side has accepted a call, though the answer is a refusal (R14)."""
    refused = [key.pk for key in keys if key.state == State.COMPLETED and _is_refusal(key)]
    if not refused:
        return set()
    steps = Step.objects.using(conf.DATABASE).filter(
        key_id__in=refused, applied_at__isnull=False, generation=F("key__generation")
    )
    return set(steps.values_list("key_id", flat=True))


def _is_refusal(key: Key) -> bool:
    return not key.deferred and (key.status or 0) >= 400
