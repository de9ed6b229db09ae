"""The overview: what is open, what is late, what is shut; each number one short look at one index."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Min, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from idempotency.admin import chart, search, sentences
from idempotency.admin.acting import back
from idempotency.admin.advice import ADVICE, Advice
from idempotency.admin.base import COUNTED, CappedCount, ConsoleAdmin
from idempotency.admin.breakers import breakers, force, known, shown
from idempotency.admin.forms import BreakerForm
from idempotency.admin.moments import Moment, duration
from idempotency.admin.situations import OVERDUE_AFTER, situation
from idempotency.conf import conf
from idempotency.models import Event, Heartbeat, Key
from idempotency.operations import heartbeat


@dataclass(frozen=True, slots=True)
class Tile:
    """One number, what it counts, and the list behind it."""

    label: str
    count: int
    oldest: str
    tone: str
    query: str


@dataclass(frozen=True, slots=True)
class Pulse:
    """A recurring task, and whether it is alive."""

    task: str
    purpose: str
    every: str
    setting: str
    last: Moment | None
    late: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """Read-only mode, and why it is on."""

    name: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Urgent:
    """A key that somebody should look at."""

    key: Key
    line: str
    advice: Advice


class OverviewAdmin(ConsoleAdmin):
    """The first page of the console."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show how the whole ledger stands."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            **summary(request),
            "title": "Overview",
            "opts": self.opts,
            "media": self.media,
            "may_force": request.user.has_perm("idempotency.control_breaker"),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/idempotency/overview.html", context)

    def get_urls(self) -> list[URLPattern]:
        """Return the page of a breaker before Django's own."""
        force = transaction.non_atomic_requests(self.admin_site.admin_view(self.force_view))
        return [
            path("breaker/<path:name>/", force, name="idempotency_breaker"),
            *super().get_urls(),
        ]

    def force_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Hold a circuit breaker open or closed, or let it go."""
        if not request.user.has_perm("idempotency.control_breaker"):
            raise PermissionDenied
        breaker = known(request).get(name)
        if breaker is None:
            raise Http404("No such breaker is shown here.")
        form = BreakerForm(request.POST) if request.method == "POST" else BreakerForm()
        request.current_app = self.admin_site.name
        if request.method == "POST" and form.is_valid():
            force(request, breaker, form)
            return back(
                reverse("admin:idempotency_heartbeat_changelist", current_app=self.admin_site.name)
            )
        context = {
            **self.admin_site.each_context(request),
            "title": f"Circuit breaker: {name}",
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "breaker": shown(breaker),
        }
        return TemplateResponse(request, "admin/idempotency/breaker.html", context)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the link to whoever may see the page."""
        return self.has_view_permission(request)


def summary(request: HttpRequest) -> dict[str, Any]:
    """Return all that the page shows."""
    now = timezone.now()
    shown_breakers, problem = breakers(request)
    return {
        "now": Moment.of(now, now=now),
        "tiles": _tiles(now),
        "pulses": _pulses(now),
        "urgent": _urgent(now),
        "alarms": _alarms(now),
        "breakers": shown_breakers,
        "breakers_problem": problem,
        "switches": _switches(request),
        "chart": chart.last_day(now=now),
        "chart_kinds": chart.KINDS,
        "chart_box": f"0 0 {chart.WIDTH} {chart.HEIGHT + chart.FOOT}",
        "chart_foot": chart.HEIGHT + chart.FOOT - 4,
        "chart_base": chart.HEIGHT,
        "chart_width": chart.WIDTH,
    }


def _tiles(now: datetime) -> list[Tile]:
    keys = Key.objects.using(conf.DATABASE)
    waiting = search.waiting(keys)
    return [
        _tile("Need a person", "person", search.person(keys), "needs_person_since", now, "bad"),
        _tile("Unknown", "unknown", search.unknown(keys), "unknown_since", now, "warn"),
        _tile("Running", "running", search.running(keys), "lease_until", now, "busy"),
        _tile(
            "Deferred work due", "waiting", waiting.filter(due_at__lte=now), "due_at", now, "busy"
        ),
        _tile(
            "Waiting for its time", "waiting", waiting.filter(due_at__gt=now), "due_at", now, "wait"
        ),
        _tile(
            "Settled, still watched", "watched", search.watched(keys), "next_lookup_at", now, "wait"
        ),
    ]


def _tile(label: str, view: str, rows: QuerySet[Key], since: str, now: datetime, tone: str) -> Tile:
    found = rows.order_by(since)[: COUNTED + 1].aggregate(n=Count("pk"), oldest=Min(since))
    count = found["n"] if found["n"] <= COUNTED else CappedCount(COUNTED)
    seconds = (now - found["oldest"]).total_seconds() if found["oldest"] else 0.0
    if since == "due_at" and seconds > OVERDUE_AFTER:
        tone = "bad"
    # A lease or a look-up ahead has no age; what has passed does.
    oldest = f"oldest {duration(seconds)}" if seconds > 0 else ""
    return Tile(label, count, oldest, tone if count else "none", f"state={view}")


def _pulses(now: datetime) -> list[Pulse]:
    seen = {beat.name: beat.last_ok_at for beat in Heartbeat.objects.using(conf.DATABASE)}
    silent = heartbeat.silent()
    tasks = {
        "beat": ("keeps the time of all the others", "", ""),
        "broker": ("takes beat's messages to the workers", "", ""),
    } | {
        task.name: (task.purpose, duration(task.every()), task.setting)
        for task in heartbeat.watched()
    }
    pulses = []
    for task, (purpose, every, setting) in tasks.items():
        at = seen.get(task)
        if at is None and task in heartbeat.SIGNS:
            continue
        last = None if at is None else Moment.of(at, now=now)
        pulses.append(Pulse(task, purpose, every, setting, last, task in silent))
    return pulses


def _switches(request: HttpRequest) -> list[Switch]:
    hook = conf.ADMIN_SWITCHES
    return [] if hook is None else [Switch(one.name, one.reason()) for one in hook(request)]


def _urgent(now: datetime) -> list[Urgent]:
    keys = Key.objects.using(conf.DATABASE).defer("body", "headers", "evidence")
    rows = [*search.person(keys).order_by("needs_person_since")[:10]]
    rows += (
        search.unknown(keys)
        .filter(needs_person_since=None)
        .order_by("unknown_since")[: 10 - len(rows)]
    )
    found = [(key, situation(key, now=now)) for key in rows]
    return [Urgent(key, sentences.sentence(key, how, now=now), ADVICE[how]) for key, how in found]


def _alarms(now: datetime) -> list[tuple[Event, Moment]]:
    events = Event.objects.using(conf.DATABASE).filter(alarming=True).order_by("-at")[:5]
    return [(event, Moment.of(event.at, now=now)) for event in events]
