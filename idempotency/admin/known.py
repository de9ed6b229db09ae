"""What is known of the keys on a page beside their rows, by the host and by the ledger: asked once for all of them."""

import logging
import uuid
from collections.abc import Iterable, Mapping

from idempotency.admin.accepted import accepted
from idempotency.admin.news import news
from idempotency.conf import conf
from idempotency.models import Key
from idempotency.types import Known, News

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
    """Leave with each row of a list what is known of it beside the row, for the list's columns."""
    rows = list(keys)
    hosts, ours, theirs = known(rows), news(rows), accepted(rows)
    for key in rows:
        vars(key)["known"] = hosts.get(key.pk, NOTHING), ours.get(key.pk), key.pk in theirs


def noted(key: Key) -> tuple[Known, News | None, bool]:
    """Return what was left with a row, if anything: what the host knows, and what the other side said against it."""
    left: tuple[Known, News | None, bool] = vars(key).get("known", (NOTHING, None, False))
    return left
