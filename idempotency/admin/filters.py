"""Filters that stay quick on any number of rows: each choice is one range of one index."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from idempotency.admin import search
from idempotency.models import Key
from idempotency.types import State


def first_id(at: datetime) -> uuid.UUID:
    """Return the lowest id that a row made at that time can have: ids are ordered by time (RFC 9562 §5.7)."""
    return uuid.UUID(int=int(at.timestamp() * 1000) << 80)


@dataclass(frozen=True, slots=True)
class View:
    """One choice of the state filter: which keys, and in which order."""

    label: str
    rows: Callable[[QuerySet[Key]], QuerySet[Key]]
    order: tuple[Any, ...] = ("-pk",)


def _open(keys: QuerySet[Key]) -> QuerySet[Key]:
    return keys.filter(pk__in=search.open_keys())


_MOST_URGENT = (
    search.oldest_first("needs_person_since"),
    search.oldest_first("unknown_since"),
    "created_at",
)

VIEWS = {
    "open": View("Open: all that is not settled, or needs a person", _open, _MOST_URGENT),
    "person": View("Needs a person", search.person, ("needs_person_since",)),
    "unknown": View("Unknown", search.unknown, ("unknown_since",)),
    "running": View("Running", search.running, ("lease_until",)),
    "waiting": View("Waiting", search.waiting, ("due_at",)),
    "watched": View("Settled, still watched", search.watched, ("next_lookup_at",)),
    "released": View("Released", lambda keys: keys.filter(state=State.RELEASED)),
    "completed": View("Completed", lambda keys: keys.filter(state=State.COMPLETED)),
    "all": View("Any state", lambda keys: keys),
}


class StateFilter(admin.SimpleListFilter):
    """By state; without a choice it is what is open, or any state for a search."""

    title = "state"
    parameter_name = "state"

    def lookups(
        self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]"
    ) -> list[tuple[str, str]]:
        """Return the choices."""
        self._default = default_view(request)
        return [(name, view.label) for name, view in VIEWS.items()]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Return the choices without Django's "All", which would be a second name of one of them."""
        chosen = self.value() or self._default
        for name, label in self.lookup_choices:
            yield {
                "selected": name == chosen,
                "query_string": changelist.get_query_string({self.parameter_name: name}),
                "display": label,
            }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the choice."""
        return VIEWS[chosen_view(request)].rows(queryset)


def default_view(request: HttpRequest) -> str:
    """Return the view of a list that names none: who searches wants to find, whatever the state."""
    return "all" if request.GET.get("q", "").strip() else "open"


def chosen_view(request: HttpRequest) -> str:
    """Return the name of the view that the address asks for."""
    name = request.GET.get(StateFilter.parameter_name, "")
    return name if name in VIEWS else default_view(request)


AGES = {
    "hour": ("Last hour", timedelta(hours=1), True),
    "day": ("Last 24 hours", timedelta(days=1), True),
    "week": ("Last 7 days", timedelta(days=7), True),
    "before-hour": ("More than an hour ago", timedelta(hours=1), False),
    "before-day": ("More than 24 hours ago", timedelta(days=1), False),
}


class AgeFilter(admin.SimpleListFilter):
    """By when the key was first seen, which its id tells."""

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
        bound = first_id(timezone.now() - age)
        return queryset.filter(pk__gte=bound) if since else queryset.filter(pk__lt=bound)
