"""One action on many rows: the ones that a list's address names, counted before and again when it is done.

# Note [Bulk]
The form carries the list's filter, never the rows: a thousand ids in a form are refused by Django, and would be out of
date. Each row is decided by itself at the moment of writing, so that what has changed meanwhile is refused, not forced.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from idempotency.admin import audit
from idempotency.admin.acting import REPEATED, attempt, back, require
from idempotency.admin.actions import Action
from idempotency.admin.base import query_of, said_of
from idempotency.admin.detail import Look, glance
from idempotency.admin.forms import ActionForm
from idempotency.admin.known import note
from idempotency.clock import SYSTEM
from idempotency.models import Key

MOST = {"ask": 25, "retry": 500, "cancel": 500}
"""Rows that one press of the button takes: asking is a call outside each, the others are a write each."""
SECONDS = 6.0
"""Time after which a press of the button stops and says how far it came: a request has a budget, too."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be done."""

    eligible: list[Look]
    refused: int
    more: bool
    """There are more rows than one press takes."""


class BulkPages:
    """The page of an action on many, for a list whose rows lead to keys."""

    admin_site: Any
    opts: Any
    media: Any

    def bulk_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Preview and, on POST, do it."""
        action = require(request, name)
        if name not in MOST:
            raise PermissionDenied
        preview = _preview(action, self.keys_of(request))
        if request.method == "POST":
            form = ActionForm(request.POST)
            if form.is_valid():
                _perform(request, action, preview, form)
                return back(self._list(request))
        else:
            form = ActionForm()
        context = {
            **self.admin_site.each_context(request),
            "title": f"{action.label}: many at once",
            "opts": self.opts,
            "media": self.media,
            "action": action,
            "form": form,
            "preview": preview,
            "sample": preview.eligible[:_SHOWN],
            "unshown": len(preview.eligible) - _SHOWN,
            "most": MOST[name],
            "list_address": self._list(request),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/idempotency/bulk.html", context)

    def keys_of(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the keys that the list with this address shows."""
        raise NotImplementedError

    def _list(self, request: HttpRequest) -> str:
        query = query_of(request)
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name) + (f"?{query}" if query else "")


def _preview(action: Action, keys: QuerySet[Key]) -> Preview:
    rows = list(keys.select_related("work")[: MOST[action.name] + 1])
    note(rows)
    looks = [glance(key) for key in rows[: MOST[action.name]]]
    eligible = [seen for seen in looks if not action.refusal(seen)]
    return Preview(eligible, len(looks) - len(eligible), more=len(rows) > len(looks))


def _perform(request: HttpRequest, action: Action, preview: Preview, form: ActionForm) -> None:
    actor, reason = request.user.get_username(), form.cleaned_data["reason"]
    detail = {"rows": len(preview.eligible), "list": said_of(request)}
    if not audit.begin(
        form=form.cleaned_data["form"],
        kind=f"staff-{action.name}-many",
        actor=actor,
        reason=reason,
        detail=detail,
    ):
        messages.warning(request, REPEATED)
        return
    until = SYSTEM.now() + SECONDS
    came_of_it: Counter[str] = Counter()
    for seen in preview.eligible:
        if SYSTEM.now() > until:
            break
        audit.record(
            kind=f"staff-{action.name}",
            actor=actor,
            key_id=seen.key.pk,
            reason=reason,
            detail={"before": seen.key.state},
        )
        came_of_it[attempt(action, seen, actor, reason, {}).text] += 1
    done = came_of_it.total()
    messages.info(request, f"{action.label}: {done} of {len(preview.eligible)} done.")
    for text, count in came_of_it.most_common(_SHOWN):
        messages.info(request, f"{count} × {text}")
    if done < len(preview.eligible):
        messages.warning(request, "Time was up before all were done; press again for the rest.")
