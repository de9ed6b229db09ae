"""Exact search: each thing that staff are given by a caller has an index of its own, and is asked by itself."""

import uuid
from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import OrderBy

from idempotency.conf import conf
from idempotency.ledger import storable
from idempotency.models import Key, Operation, Step
from idempotency.models.fields import LastPart
from idempotency.types import State

MOST = 1_000
"""Rows taken of each kind; a list that joins several kinds says so."""

HELP = "Exact: order or other reference, payment id, key, gateway reference or key, request id, operation_ref."

HAS_REFERENCE = ~Q(reference="")
"""In the words of the indexes, which leave out what is empty."""


def keys_for(term: str) -> list[uuid.UUID]:
    """Return the ids of the keys that the text is an exact name of."""
    # What no column can hold, e.g. a byte of a terminal that is no UTF-8, is nobody's name.
    text = storable.text(term).strip()
    bare = text.strip('"')
    # "order 881" and "#881": what is said on the telephone. It may also be a reference with a space in it, and a key
    # may have quotes of its own.
    plain = bare.split()[-1].lstrip("#") if bare.split() else ""
    said = dict.fromkeys(name for name in (text, bare, plain) if name)
    return list(dict.fromkeys(key for name in said for key in _called(name)))


def _called(text: str) -> list[uuid.UUID]:
    # By a pattern it took a long text, once pasted, seconds in which the process did nothing else.
    last = text.rstrip("/").rpartition("/")[2]
    keys = Key.objects.using(conf.DATABASE)
    steps = Step.objects.using(conf.DATABASE)
    arms: list[QuerySet[Any, tuple[uuid.UUID]]] = [
        keys.filter(key=text).values_list("pk"),
        # The indexes leave out what is empty, so the planner has to hear that this is not.
        keys.filter(HAS_REFERENCE, reference=text).values_list("pk"),
        keys.filter(~Q(request_id=""), request_id=text).values_list("pk"),
        steps.filter(HAS_REFERENCE, reference=text).values_list("key_id"),
        steps.filter(downstream_key=text).values_list("key_id"),
    ]
    if last:
        named = keys.annotate(names=LastPart("resource"))
        arms.append(named.filter(~Q(resource=""), names=last).values_list("pk"))
    if (ref := _uuid(text)) is not None:
        arms.append(keys.filter(pk=ref).values_list("pk"))
        work = Operation.objects.using(conf.DATABASE)
        arms.append(work.filter(pk=ref).values_list("key_id"))
    return _union(arms)


def keys_referring(references: Collection[str]) -> list[uuid.UUID]:
    """Return the ids of some keys with one of these references: in no order, for that could be any number of rows."""
    keys = Key.objects.using(conf.DATABASE).filter(HAS_REFERENCE, reference__in=references)
    return list(keys.values_list("pk", flat=True)[:MOST])


def keys_with_step(reference: str) -> list[uuid.UUID]:
    """Return the ids of the keys of which a call outside is known there under that reference."""
    steps = Step.objects.using(conf.DATABASE).filter(HAS_REFERENCE, reference=reference)
    return list(steps.values_list("key_id", flat=True)[:MOST])


def open_keys(*, deferred: bool = False) -> list[uuid.UUID]:
    """Return the ids of the keys that somebody must still come back to: each kind by its own small index."""
    keys = Key.objects.using(conf.DATABASE)
    keys = keys.filter(deferred=True) if deferred else keys
    return _union(
        [
            person(keys).order_by("needs_person_since").values_list("pk"),
            unknown(keys).order_by("unknown_since").values_list("pk"),
            running(keys).order_by("lease_until").values_list("pk"),
            waiting(keys).order_by("due_at").values_list("pk"),
        ]
    )


def person(keys: QuerySet[Key]) -> QuerySet[Key]:
    """Return those that need a person."""
    return keys.filter(needs_person_since__isnull=False)


def unknown(keys: QuerySet[Key]) -> QuerySet[Key]:
    """Return those that nobody knows about yet."""
    return keys.filter(unknown_since__isnull=False)


def running(keys: QuerySet[Key]) -> QuerySet[Key]:
    """Return those that a process holds, in the words of the index on leases."""
    held = keys.filter(state=State.IN_PROGRESS, lease_until__isnull=False)
    return held.filter(Q(call_begun=True) | Q(deferred=True))


def waiting(keys: QuerySet[Key]) -> QuerySet[Key]:
    """Return those whose deferred work waits for its time."""
    return keys.filter(due_at__isnull=False)


def watched(keys: QuerySet[Key]) -> QuerySet[Key]:
    """Return settled ones that a sender might still contradict."""
    return keys.filter(next_lookup_at__isnull=False, watched=True)


def oldest_first(name: str) -> OrderBy:
    """Return an ordering that no index has, so that the few rows found are sorted and the many are left alone."""
    return F(name).asc(nulls_last=True)


def _union(arms: Sequence[QuerySet[Any, tuple[uuid.UUID]]]) -> list[uuid.UUID]:
    first, *rest = (arm[:MOST] for arm in arms)
    return list({row[0]: None for row in first.union(*rest, all=True)})


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
