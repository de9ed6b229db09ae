"""What the other side said against the settlements of keys, also where a person has seen to it: asked once for all."""

import uuid
from collections.abc import Iterable, Mapping

from idempotency.conf import conf
from idempotency.models import Event, Key
from idempotency.types import News


def news(keys: Iterable[Key]) -> Mapping[uuid.UUID, News]:
    """Return by a key's id the latest news that contradicts its settlement, in one query at most."""
    settled = {key.pk: key for key in keys if key.settled_at is not None}
    found: dict[uuid.UUID, News] = {}
    if not settled:
        return found
    events = Event.objects.using(conf.DATABASE).filter(key_id__in=settled, kind="late-news")
    for event in events.order_by("pk"):
        if event.key_id is None:
            continue
        key, word = settled[event.key_id], event.detail.get("news")
        what = News(word) if word in set(News) else News.OTHERWISE
        # That it happened all the same contradicts only a settlement that was there before; a new life has no old news.
        since = key.settled_at if what is News.OTHERWISE else key.created_at
        if since is None or event.at >= since:
            found[key.pk] = what
    return found
