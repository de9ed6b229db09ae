"""What every list of the console shares: it shows, it never edits, and no query of it grows with the table."""

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote_plus

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.views.main import PAGE_VAR
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.text import capfirst

from idempotency.conf import conf
from idempotency.http.header import mask

COUNTED = 10_000
"""Rows are counted up to here; beyond it the number says nothing to a person, and costs more and more."""


def query_of(request: HttpRequest) -> str:
    """Return what a list's address asks for, without the number of its page."""
    asked = request.GET.copy()
    asked.pop(PAGE_VAR, None)
    return asked.urlencode()


def said_of(request: HttpRequest) -> str:
    """Return the same as it is put on record: readable, and a card number in it masked."""
    return mask(unquote_plus(query_of(request)))


def base_admin() -> "type[admin.ModelAdmin[Any]]":
    """Return the ModelAdmin under the console: the host's choice, or that of the theme in use."""
    themed = apps.is_installed("unfold")
    path = "unfold.admin.ModelAdmin" if themed else "django.contrib.admin.ModelAdmin"
    base: type[admin.ModelAdmin[Any]] = import_string(conf.ADMIN_BASE or path)
    return base


class CappedCount(int):
    """A number of rows of which only "more than this" is known."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Count no further than `COUNTED`; so nobody can ask for a page, and an OFFSET, far behind it either."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, or that there are more than anybody will page through."""
        rows = cast("QuerySet[Any]", self.object_list)
        found = rows.order_by().values("pk")[: COUNTED + 1].count()
        return found if found <= COUNTED else CappedCount(COUNTED)


if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = base_admin()


class ConsoleAdmin(_Base):
    """A list without add, change or delete, for anybody: rows change by actions only, and leave a trace."""

    change_list_template = "admin/idempotency/change_list.html"
    actions = None
    paginator = CappedPaginator
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    # The API's address of a row answers its owner, and nobody who is logged in here.
    view_on_site = False
    # Unfold's own switch: its lists have room for the columns then.
    list_fullwidth = True

    class Media:
        css = {"all": ["idempotency/console.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: rows are made by requests."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: a superuser, too, changes a key by an action only."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: rows leave by the purge."""
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow what the list's own filters ask: of any column Django would tell, guess by guess, what a page hides."""
        names = map(_parameter_of, self.get_list_filter(request))
        own = any(lookup == name or lookup.startswith(f"{name}__") for name in names)
        # No column holds a NUL, and the database says so with an error.
        return own and "\0" not in value and super().lookup_allowed(lookup, value, request)

    def rows_of(self, request: HttpRequest) -> QuerySet[Any]:
        """Return all rows of the list that has this address, whichever of its pages it is."""
        whole = copy(request)
        # The list may have become too short for a page of that number, which Django refuses.
        whole.GET = QueryDict(query_of(request))
        return self.get_changelist_instance(whole).get_queryset(whole)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list under its own name: nothing on it is selected."""
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Lead to the events: Django's own history, to which its pages link, knows nothing and would say so."""
        name = "admin:idempotency_event_changelist"
        return redirect(reverse(name, current_app=self.admin_site.name))

    def to_overview(self) -> tuple[str, str]:
        """Return the way to the overview, as a list shows it."""
        name = "admin:idempotency_heartbeat_changelist"
        return "Overview", reverse(name, current_app=self.admin_site.name)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read from the ledger's own database."""
        return super().get_queryset(request).using(conf.DATABASE)


def _parameter_of(one: Any) -> str:
    """Return with what a filter's parameters begin: a field's path, or what a class of its own names."""
    path = one[0] if isinstance(one, tuple | list) else one
    return path if isinstance(path, str) else str(path.parameter_name)
