"""What the host knows of the keys on a page: asked once for all of them."""

import logging
import uuid
from collections.abc import Iterable, Mapping

from idempotency.conf import conf
from idempotency.models import Key
from idempotency.types import Known

logger = logging.getLogger(__name__)

NOTHING = Known()


def known(keys: Iterable[Key]) -> Mapping[uuid.UUID, Known]:
    """Return by a key's id what the host knows of it; a host that fails must not hide what the ledger knows."""
    hook, rows = conf.ADMIN_KNOWS, list(keys)
    if hook is None or not rows:
        return {}
    try:
        found: Mapping[uuid.UUID, Known] = hook(rows)
    except Exception:
        logger.exception("ADMIN_KNOWS failed")
        return {}
    return found


def note(keys: Iterable[Key]) -> None:
    """Leave with each row of a list what the host knows of it, for the list's columns."""
    rows = list(keys)
    found = known(rows)
    for key in rows:
        vars(key)["known"] = found.get(key.pk, NOTHING)


def noted(key: Key) -> Known:
    """Return what was left with a row, if anything."""
    left = vars(key).get("known", NOTHING)
    return left if isinstance(left, Known) else NOTHING
