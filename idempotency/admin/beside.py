"""What the ledger has on record beside the rows of keys, and decides how they stand: asked once for all on a page."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from idempotency.conf import conf
from idempotency.models import Event, Key, Sender, Step
from idempotency.types import Ending, News, State


@dataclass(frozen=True, slots=True)
class Beside:
    """What a row alone does not say."""

    news: News | None = None
    """What the other side said against the settlement, also where a person has seen to it."""
    proven: bool = False
    """Of an unknown key: a call outside was applied and none is open, so only our own part is missing."""


NOTHING = Beside()


def beside(keys: Iterable[Key]) -> Mapping[uuid.UUID, Beside]:
    """Return by a key's id what is on record beside it, of those of which something is: two queries at most."""
    rows = list(keys)
    news = _news([key for key in rows if key.settled_at is not None])
    proven = _proven([key for key in rows if key.state == State.UNKNOWN])
    return {pk: Beside(news.get(pk), pk in proven) for pk in {*news, *proven}}


def _news(settled: list[Key]) -> Mapping[uuid.UUID, News]:
    found: dict[uuid.UUID, News] = {}
    if not settled:
        return found
    keys = {key.pk: key for key in settled}
    events = Event.objects.using(conf.DATABASE).filter(key_id__in=keys, kind="late-news")
    for event in events.order_by("pk"):
        if event.key_id is None:
            continue
        key, word = keys[event.key_id], event.detail.get("news")
        news = News(word) if word in set(News) else News.OTHERWISE
        # That it happened all the same contradicts only a settlement that was there before; a new life has no old news.
        since = key.settled_at if news is News.OTHERWISE else key.created_at
        if since is None or event.at >= since:
            found[key.pk] = news
    return found


def _proven(unknown: list[Key]) -> set[uuid.UUID]:
    if not unknown:
        return set()
    mine = Step.objects.filter(key_id=OuterRef("pk"), generation=OuterRef("generation"))
    open_ones = Sender.objects.filter(
        Q(ending=None) | Q(ending=Ending.AMBIGUOUS),
        step__key_id=OuterRef("pk"),
        step__generation=OuterRef("generation"),
        step__applied_at=None,
    )
    keys = Key.objects.using(conf.DATABASE).filter(pk__in=[key.pk for key in unknown])
    proven = keys.filter(Exists(mine.filter(applied_at__isnull=False)), ~Exists(open_ones))
    return set(proven.values_list("pk", flat=True))
