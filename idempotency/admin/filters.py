"""Filters that stay quick on any number of rows: each choice is one range of one index."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest

from idempotency.admin import search
from idempotency.ledger import moment
from idempotency.types import State


def first_id(at: datetime) -> uuid.UUID:
    """Return the lowest id that a row made at that time can have: ids are ordered by time (RFC 9562 §5.7)."""
    return uuid.UUID(int=int(at.timestamp() * 1000) << 80)


@dataclass(frozen=True, slots=True)
class View:
    """One choice of a state filter: which rows, and in which order."""

    label: str
    rows: Callable[[QuerySet[Any]], QuerySet[Any]]
    order: tuple[Any, ...] = ("-pk",)


KEYS = {
    "open": View(
        "Open: not settled, or needs a person",
        lambda keys: keys.filter(pk__in=search.open_keys()),
        # No index has this order, so the few rows found are sorted and the many others left alone.
        (
            search.oldest_first("needs_person_since"),
            search.oldest_first("unknown_since"),
            "created_at",
        ),
    ),
    "person": View("Needs a person", search.person, ("needs_person_since",)),
    "unknown": View("Unknown", search.unknown, ("unknown_since",)),
    "running": View("Running", search.running, ("lease_until",)),
    "waiting": View("Waiting", search.waiting, ("due_at",)),
    "watched": View("Settled, still watched", search.watched, ("next_lookup_at",)),
    "released": View("Released", lambda keys: keys.filter(state=State.RELEASED)),
    "completed": View("Completed", lambda keys: keys.filter(state=State.COMPLETED)),
    "all": View("Any state", lambda keys: keys),
}

OPERATIONS = {
    "open": View(
        "Open: not ended",
        lambda work: work.filter(key_id__in=search.open_keys(deferred=True)),
        ("created_at",),
    ),
    "waiting": View(
        "Waiting", lambda work: work.filter(key__due_at__isnull=False), ("key__due_at",)
    ),
    "running": View(
        "Running",
        lambda work: work.filter(
            key__state=State.IN_PROGRESS, key__lease_until__isnull=False, key__deferred=True
        ),
        ("key__lease_until",),
    ),
    "unknown": View(
        "Unknown",
        lambda work: work.filter(key__unknown_since__isnull=False),
        ("key__unknown_since",),
    ),
    "failed": View("Ended with an error", lambda work: work.filter(error__isnull=False)),
    "all": View("Any state", lambda work: work),
}


class StateFilter(admin.SimpleListFilter):
    """By state; without a choice it is what is open, or any state for a search."""

    title = "state"
    parameter_name = "state"
    views: ClassVar[Mapping[str, View]] = {}

    def lookups(
        self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]"
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        self._chosen = self.chosen(request)
        return [(name, view.label) for name, view in self.views.items()]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Return the choices without Django's "All", which would be a second name of one of them."""
        for name, label in self.lookup_choices:
            yield {
                "selected": name == self._chosen,
                "query_string": changelist.get_query_string({self.parameter_name: str(name)}),
                "display": label,
            }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the choice."""
        return self.views[self.chosen(request)].rows(queryset)

    @classmethod
    def chosen(cls, request: HttpRequest) -> str:
        """Return the view that the address asks for: who searches wants to find, whatever the state."""
        name = request.GET.get(cls.parameter_name, "")
        if name in cls.views:
            return name
        return "all" if request.GET.get("q", "").strip() else "open"

    @classmethod
    def order(cls, request: HttpRequest) -> tuple[Any, ...]:
        """Return the order of that view; what a search finds is little, and sorted by itself."""
        if request.GET.get("q", "").strip():
            return ("-created_at",)
        return cls.views[cls.chosen(request)].order


class KeyState(StateFilter):
    """Of keys."""

    views = KEYS


class OperationState(StateFilter):
    """Of deferred work, which is the state of its key."""

    views = OPERATIONS


AGES = {
    "hour": ("Last hour", timedelta(hours=1), True),
    "day": ("Last 24 hours", timedelta(days=1), True),
    "week": ("Last 7 days", timedelta(days=7), True),
    "before-hour": ("More than an hour ago", timedelta(hours=1), False),
    "before-day": ("More than 24 hours ago", timedelta(days=1), False),
}


class AgeFilter(admin.SimpleListFilter):
    """By when the row was made, which its id tells."""

    title = "first seen"
    parameter_name = "seen"

    def lookups(
        self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]"
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        return [(name, label) for name, (label, *_) in AGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the choice."""
        if self.value() not in AGES:
            return queryset
        _, age, since = AGES[str(self.value())]
        bound = first_id(moment.counted() - age)
        return queryset.filter(pk__gte=bound) if since else queryset.filter(pk__lt=bound)
