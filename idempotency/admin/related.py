"""Other keys about the same thing: so that nobody has to search twice, and two charges of one order are seen as two."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from idempotency.admin import search
from idempotency.admin.detail import BODIES, Look, glance
from idempotency.admin.known import note
from idempotency.admin.situations import CONTRADICTED, Situation
from idempotency.conf import conf
from idempotency.http.header import mask
from idempotency.http.scope import tenant_of
from idempotency.models import Key

MOST = 20
"""Rows that a page shows of what has the same reference."""

# What was settled otherwise, and happened all the same, was done, too.
_DONE = (Situation.COMPLETED, *CONTRADICTED)


@dataclass(frozen=True, slots=True)
class Double:
    """One reference for which the same was done under more than one key."""

    reference: str
    looks: tuple[Look, ...]

    @property
    def text(self) -> str:
        """What to say and to do about it."""
        done = "; ".join(f"{one.subject}, {one.standing}" for one in self.looks)
        return (
            f"Done {len(self.looks)} times for “{self.reference}”, under different keys: {done}. "
            "If it was meant once, undo one of them, e.g. refund it."
        )


def related(seen: Look) -> list[Look]:
    """Return the other keys with this key's reference, and what the other side told about its calls by itself."""
    names = {seen.key.reference, *(call.step.reference for call in seen.calls)} - {""}
    keys = Key.objects.using(conf.DATABASE).defer(*BODIES).select_related("work")
    rows: list[Key] = []
    if names:
        rows += keys.filter(pk__in=search.keys_referring(names)).order_by("-pk")[: MOST + 1]
    if seen.situation is Situation.TAKEN_IN:
        rows += keys.filter(pk__in=search.keys_with_step(seen.key.reference))[:MOST]
    others = {row.pk: row for row in rows if row.pk != seen.key.pk and _visible(row, seen.key)}
    note(others.values())
    return sorted(map(glance, others.values()), key=lambda one: one.key.created_at)


def doubles(looks: Iterable[Look]) -> list[Double]:
    """Return the references for which one operation of one tenant was done under more than one key."""
    groups: Mapping[tuple[str, ...], list[Look]] = defaultdict(list)
    for one in looks:
        key = one.key
        if key.reference and one.situation in _DONE and one.known.counts:
            groups[tenant_of(key.scope), key.operation, key.reference].append(one)
    return [
        Double(mask(reference), tuple(sorted(found, key=lambda one: one.key.created_at)))
        for (_, _, reference), found in groups.items()
        if len({one.key.pk for one in found}) > 1
    ]


def doubles_of(seen: Look, others: Sequence[Look]) -> list[Double]:
    """Return those that a key itself belongs to."""
    return [one for one in doubles([seen, *others]) if seen.key.pk in _ids(one)]


def _ids(double: Double) -> set[uuid.UUID]:
    return {one.key.pk for one in double.looks}


def _visible(row: Key, of: Key) -> bool:
    """Whether it is of the same tenant; messages belong to nobody."""
    if row.settled_by == "message" or of.settled_by == "message":
        return True
    return tenant_of(row.scope) == tenant_of(of.scope)
