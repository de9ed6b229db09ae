"""Keys: find one, read its story."""

import uuid
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from idempotency.admin import search, sentences
from idempotency.admin.advice import ADVICE
from idempotency.admin.base import ConsoleAdmin
from idempotency.admin.detail import look, page
from idempotency.admin.filters import VIEWS, AgeFilter, StateFilter, chosen_view
from idempotency.admin.moments import Moment
from idempotency.admin.situations import situation
from idempotency.http.header import mask
from idempotency.models import Key

# What no list needs to read from disk.
_BODIES = (
    *("body", "headers", "fingerprint", "fingerprint_parts", "evidence", "traceparent"),
    *("work__input", "work__result"),
)


class KeyAdmin(ConsoleAdmin):
    """The list of keys, and the page of each."""

    list_display = ("about", "state_shown", "seen", "reference_shown", "key_shown")
    list_filter = (StateFilter, AgeFilter)
    # The fields are those of `search.keys_for`; Django shows the box if there is one.
    search_fields = ("key",)
    search_help_text = search.HELP

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave the bodies where they are."""
        return super().get_queryset(request).select_related("work").defer(*_BODIES)

    def get_ordering(self, request: HttpRequest) -> Any:
        """Return the order of the view, which is that of the index it reads."""
        return VIEWS[chosen_view(request)].order if not request.GET.get("q") else ("-created_at",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the keys of which the text is an exact name."""
        if not search_term.strip():
            return queryset, False
        return queryset.filter(pk__in=search.keys_for(search_term)), False

    # -- columns -----------------------------------------------------------------------------------

    @admin.display(description="What and how it stands")
    def about(self, key: Key) -> SafeString:
        """Show the line to read aloud."""
        now = timezone.now()
        found = situation(key, now=now, error=_error(key))
        return format_html(
            '<span class="idem-about">{}</span><span class="idem-standing">{}</span>',
            sentences.subject(key),
            sentences.standing(key, found, now=now),
        )

    @admin.display(description="State")
    def state_shown(self, key: Key) -> SafeString:
        """Show the situation in two words."""
        advice = ADVICE[situation(key, now=timezone.now(), error=_error(key))]
        return format_html('<span class="idem-badge idem-{}">{}</span>', advice.tone, advice.label)

    @admin.display(description="First seen")
    def seen(self, key: Key) -> SafeString:
        """Show when the key was claimed first."""
        at = Moment.of(key.created_at, now=timezone.now())
        return format_html('<time datetime="{}" title="{}">{}</time>', at.iso, at.text, at.ago)

    @admin.display(description="Reference")
    def reference_shown(self, key: Key) -> str:
        """Show the order, unless somebody put a card number there."""
        return mask(key.reference)

    @admin.display(description="Key and caller")
    def key_shown(self, key: Key) -> SafeString:
        """Show the start of the key, and whose it is."""
        text = mask(key.key)
        short = text if len(text) <= 24 else f"{text[:23]}…"
        return format_html('{}<span class="idem-standing">{}</span>', short, key.scope)

    # -- pages -------------------------------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, under a name that says what it lists."""
        return super().changelist_view(request, {"title": "Keys", **(extra_context or {})})

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one key; there is nothing to change here."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied("A key is changed by an action.")
        key = self._key(request, object_id)
        if key is None:
            messages.warning(request, "There is no such key, or it has been purged.")
            return redirect(f"{self.admin_site.name}:idempotency_heartbeat_changelist")
        return self.detail(request, key)

    def detail(self, request: HttpRequest, key: Key, *, revealed: bool = False) -> HttpResponse:
        """Return the page of a key."""
        seen = look(key)
        context = {
            **self.admin_site.each_context(request),
            **page(seen, revealed=revealed),
            "title": seen.subject,
            "opts": self.opts,
            "media": self.media,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/idempotency/key/detail.html", context)

    def _key(self, request: HttpRequest, object_id: str) -> Key | None:
        try:
            key_id = uuid.UUID(object_id)
        except ValueError:
            return None
        found: Key | None = ConsoleAdmin.get_queryset(self, request).filter(pk=key_id).first()
        return found


def _error(key: Key) -> object:
    return key.work.error if key.deferred and hasattr(key, "work") else None
