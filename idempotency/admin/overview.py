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

from idempotency import telemetry
from idempotency.admin import chart, search
from idempotency.admin.acting import back
from idempotency.admin.advice import runbook_address
from idempotency.admin.alarms import unhandled
from idempotency.admin.base import COUNTED, CappedCount, ConsoleAdmin
from idempotency.admin.breakers import breakers, force, known, shown
from idempotency.admin.detail import BODIES, Look, glance
from idempotency.admin.forms import BreakerForm
from idempotency.admin.known import note
from idempotency.admin.moments import Moment, duration
from idempotency.admin.occurrences import Occurrence, occurrence
from idempotency.admin.silence import PLACE, silence
from idempotency.admin.situations import OVERDUE_AFTER
from idempotency.conf import conf
from idempotency.ledger import moment
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
    model: str = "key"


@dataclass(frozen=True, slots=True)
class Pulse:
    """A recurring task, and whether it is alive."""

    task: str
    purpose: str
    every: str
    setting: str
    last: Moment | None
    standing: str
    """`alive`, `late`, or `not yet due` since beat was started."""

    @property
    def tone(self) -> str:
        """The colour of the standing."""
        return {"alive": "good", "late": "bad"}.get(self.standing, "wait")


@dataclass(frozen=True, slots=True)
class Switch:
    """Read-only mode, and why it is on."""

    name: str
    reason: str | None


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
    now = moment.counted()
    shown_breakers, problem = breakers(request)
    pulses = _pulses(now)
    return {
        "now": Moment.of(now, now=now),
        "tiles": _tiles(now),
        "pulses": pulses,
        "silence": silence([pulse.task for pulse in pulses if pulse.standing == "late"]),
        "silence_runbook": runbook_address(PLACE),
        "urgent": _urgent(),
        "alarms": _alarms(now),
        "breakers": shown_breakers,
        "breakers_problem": problem,
        "switches": _switches(request),
        "turned_away": telemetry.turned_away.counts()[:10],
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
        _alarm_tile(now),
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
    beats = {beat.name: beat for beat in Heartbeat.objects.using(conf.DATABASE)}
    silent, patience = heartbeat.silent(), heartbeat.limits()
    running_for = _running_for(beats.get("beat"), now) if "beat" not in silent else None
    tasks = {
        "beat": ("keeps the time of all the others", "", ""),
        "broker": ("takes beat's messages to the workers", "", ""),
    } | {
        task.name: (task.purpose, duration(task.every()), task.setting)
        for task in heartbeat.watched()
    }
    pulses = []
    for task, (purpose, every, setting) in tasks.items():
        at = beats[task].last_ok_at if task in beats else None
        if at is None and task in heartbeat.SIGNS:
            continue
        # The database's clock wrote it: by this one's it may be still to come.
        last = None if at is None else Moment.of(min(at, now), now=now)
        standing = "late" if task in silent else "alive"
        if standing == "late" and running_for is not None and running_for < patience[task]:
            standing = "not yet due"
        pulses.append(Pulse(task, purpose, every, setting, last, standing))
    return pulses


def _running_for(beat: Heartbeat | None, now: datetime) -> float | None:
    """Return for how many seconds beat has been running, where it says for how long it had been at its last sign."""
    running = None if beat is None else beat.detail.get("running")
    if beat is None or not isinstance(running, int | float):
        return None
    return running + (now - beat.last_ok_at).total_seconds()


def _switches(request: HttpRequest) -> list[Switch]:
    hook = conf.ADMIN_SWITCHES
    return [] if hook is None else [Switch(one.name, one.reason()) for one in hook(request)]


def _urgent() -> list[Look]:
    keys = Key.objects.using(conf.DATABASE).defer(*BODIES).select_related("work")
    rows = [*search.person(keys).order_by("needs_person_since")[:10]]
    rows += (
        search.unknown(keys)
        .filter(needs_person_since=None)
        .order_by("unknown_since")[: 10 - len(rows)]
    )
    note(rows)
    return [glance(key) for key in rows]


def _alarms(now: datetime) -> list[tuple[Event, Occurrence, Moment]]:
    events = unhandled().order_by("-at")[:5]
    return [
        (event, occurrence(event, revealed=False), Moment.of(event.at, now=now)) for event in events
    ]


def _alarm_tile(now: datetime) -> Tile:
    found = unhandled().order_by("-at")[: _ALARMS + 1].aggregate(n=Count("pk"), oldest=Min("at"))
    count = found["n"] if found["n"] <= _ALARMS else CappedCount(_ALARMS)
    oldest = f"oldest {duration((now - found['oldest']).total_seconds())}" if count else ""
    tone = "bad" if count else "none"
    return Tile("Alarms not handled", count, oldest, tone, "alarming=open", "event")


_ALARMS = 1_000
"""Alarms are counted up to here: each is one look whether somebody has handled it."""
