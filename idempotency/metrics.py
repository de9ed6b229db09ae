"""Prometheus metrics: what happens, counted from the events; how the ledger stands, read from the database.

    def show(request):
        return HttpResponse(metrics.exposition(request), content_type=metrics.CONTENT_TYPE)

Needs the extra `prometheus`. Counters are each process's own: under several processes set PROMETHEUS_MULTIPROC_DIR,
and one scrape tells of all. What is read from the database is the same for every process, and is asked once in
`KEPT` seconds, however often it is scraped. No key, account or order is ever a label.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from threading import Lock
from typing import Any

from django.db import Error, connections
from django.http import HttpRequest
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from idempotency import telemetry
from idempotency.clock import SYSTEM, Clock
from idempotency.conf import conf
from idempotency.counterfiles import AllProcesses
from idempotency.ledger import census
from idempotency.operations import heartbeat
from idempotency.operations.registry import definitions
from idempotency.resilience import BreakerState
from idempotency.telemetry import Event

logger = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_LATEST
KEPT = 5.0
"""Seconds for which one look at the database is served."""


def connect() -> None:
    """Begin to count; called when the apps are ready."""
    _counting()


@cache
def _counting() -> "_Counting":
    return _Counting()


@cache
def _ledger() -> "LedgerCollector":
    return LedgerCollector()


def exposition(request: HttpRequest) -> bytes:
    """Return all metrics in Prometheus' text form.

    Args:
        request: given to the hooks `ADMIN_BREAKERS` and `ADMIN_SWITCHES`.
    """
    _counting().begin_at_zero()
    registry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        # One scrape reaches one web process; the files tell about all of them, and the worker.
        registry = CollectorRegistry()
        AllProcesses(registry)
    ledger = CollectorRegistry(auto_describe=False)
    ledger.register(_ledger().for_request(request))
    return generate_latest(registry) + generate_latest(ledger)


# -- what happens: from the events -------------------------------------------------------------------------------------

COUNTERS: Mapping[type[Event], tuple[str, str]] = {
    telemetry.AttemptEnded: ("call_attempts", "Attempts of outside calls that came back."),
    telemetry.CallRefused: ("call_refusals", "Attempts that a guard did not let begin."),
    telemetry.CallEnded: ("calls", "Outside calls that are over, each a series of attempts."),
    telemetry.BreakerChanged: ("breaker_changes", "Moves of a circuit breaker."),
    telemetry.StoreLost: ("store_losses", "Times that a process lost its shared store."),
    telemetry.StoreFound: ("store_returns", "Times that a process found its shared store again."),
    telemetry.AdmissionRefused: ("admission_refusals", "Requests turned away before any work."),
    telemetry.SourceDegraded: ("degraded", "Answers of non-critical sources that were not live."),
    telemetry.ReadOnlySwitched: ("read_only_switches", "Times that read-only mode was switched."),
    telemetry.KeySettled: ("settlements", "Keys that came to an ending, or became unknown."),
    telemetry.PersonNeeded: ("persons_needed", "Keys that began to wait for a person."),
    telemetry.LateNews: ("late_news", "Things that happened outside against a settlement."),
    telemetry.KeyReconciled: ("reconciled_keys", "Keys that were asked about."),
    telemetry.RunEnded: ("runs", "Runs of claimed work."),
    telemetry.OperationMoved: ("operations_moved", "Runs of deferred work by what came of it."),
    telemetry.NudgeLost: ("nudges_lost", "Messages to workers that were not published."),
    telemetry.TurnEnded: ("turns", "Turns of recurring tasks."),
    telemetry.StaffActed: ("staff_actions", "Things that people did in the console."),
}
"""By event: the counter's name without `idempotency_` and `_total`, and its meaning. Its labels are the event's.

`KeyMet` and `RequestRefused` are not here: what was answered from the ledger, or not at all, is counted with what was
run, as requests.
"""

_ENDINGS = ("success", "rejected", "failed", "unknown", "cancelled")
_QUICK = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30)
_SLOW = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400)


class _Counting:
    """The metrics of one process, fed by the bus."""

    def __init__(self) -> None:
        self._counters = {
            kind: Counter(f"idempotency_{name}", meaning, kind.LABELS)
            for kind, (name, meaning) in COUNTERS.items()
        }
        for kind in self._counters:
            telemetry.subscribe(kind, self._count)
        self._requests = Counter(
            "idempotency_requests",
            "Requests to idempotent handlers, by how they were answered.",
            ("operation", "outcome"),
        )
        self._request_seconds = Histogram(
            "idempotency_request_duration_seconds",
            "Time of a request that was run, from its arrival here to its settlement.",
            ("operation",),
            buckets=_QUICK,
        )
        self._attempt_seconds = Histogram(
            "idempotency_call_attempt_duration_seconds",
            "Time of one attempt of an outside call.",
            ("guard",),
            buckets=_QUICK,
        )
        self._settled_seconds = Histogram(
            "idempotency_settled_after_seconds",
            "Time from the first claim of a key to its final ending.",
            ("operation", "deferred"),
            buckets=_SLOW,
        )
        telemetry.subscribe(telemetry.CallEnded, self._called)
        telemetry.subscribe(telemetry.KeyMet, self._met)
        telemetry.subscribe(telemetry.RequestRefused, self._refused)
        telemetry.subscribe(telemetry.RunEnded, self._ran)
        telemetry.subscribe(telemetry.AttemptEnded, self._attempted)
        telemetry.subscribe(telemetry.KeySettled, self._settled)

    def begin_at_zero(self) -> None:
        """Show what is alarming before it happens: a series that begins at 1 hides its first event from `increase`."""
        moved = self._counters[telemetry.OperationMoved]
        for definition in definitions():
            moved.labels(operation=definition.name, to="gave-up")
        turns = self._counters[telemetry.TurnEnded]
        for task in heartbeat.limits().keys() - heartbeat.SIGNS:
            turns.labels(task=task, result="failed")

    def _count(self, event: Event) -> None:
        counter = self._counters[type(event)]
        (counter.labels(*event.labels().values()) if event.LABELS else counter).inc()

    def _called(self, event: telemetry.CallEnded) -> None:
        # The first failure must not be the first that is seen of its series.
        for ending in _ENDINGS:
            self._counters[telemetry.CallEnded].labels(guard=event.guard, ending=ending)

    def _met(self, event: telemetry.KeyMet) -> None:
        outcome = "still-unknown" if event.answer == "unknown" else event.answer
        self._requests.labels(event.operation, outcome).inc()

    def _refused(self, event: telemetry.RequestRefused) -> None:
        self._requests.labels(event.operation, event.reason).inc()

    def _ran(self, event: telemetry.RunEnded) -> None:
        if event.by == "request":
            self._requests.labels(event.operation, event.ending).inc()
            self._request_seconds.labels(event.operation).observe(event.seconds)

    def _attempted(self, event: telemetry.AttemptEnded) -> None:
        self._attempt_seconds.labels(event.guard).observe(event.seconds)

    def _settled(self, event: telemetry.KeySettled) -> None:
        if event.state != "unknown":
            deferred = "yes" if event.deferred else "no"
            self._settled_seconds.labels(event.operation, deferred).observe(event.seconds)


# -- how it stands: from the database, the breakers and the switches ---------------------------------------------------


class LedgerCollector(Collector):
    """Reads how the ledger stands, at most once in `KEPT` seconds."""

    def __init__(self, *, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._lock = Lock()
        self._request: HttpRequest | None = None
        self._read_at = float("-inf")
        self._read: list[Metric] = []

    def for_request(self, request: HttpRequest) -> "LedgerCollector":
        """Return itself, with the request that the hooks are given."""
        self._request = request
        return self

    def collect(self) -> Iterable[Metric]:
        """Return the gauges."""
        with self._lock:
            if self._clock.now() >= self._read_at + KEPT:
                self._read = [*_of_ledger(), *_of_protection(self._request or HttpRequest())]
                self._read_at = self._clock.now()
            return self._read


def _of_ledger() -> Iterator[Metric]:
    up = GaugeMetricFamily("idempotency_ledger_up", "Whether the ledger's database answers.")
    try:
        seen = census.take(connection=connections[conf.DATABASE])
        marks = heartbeat.marks()
    except Error:
        up.add_metric([], 0)
        yield up
        return
    up.add_metric([], 1)
    yield up
    yield from _of_census(seen)
    yield from _of_tasks(marks)


def _of_census(seen: census.Census) -> Iterator[Metric]:
    count = _gauge("open_keys", f"Open keys by kind; counted up to {census.COUNTED}.", "state")
    age = _gauge("oldest_open_age_seconds", "For how long the oldest has been so.", "state")
    for name, kind in seen.open.items():
        count.add_metric([name], kind.count)
        age.add_metric([name], kind.age)
    yield count
    yield age
    yield GaugeMetricFamily(
        "idempotency_oldest_open_key_age_seconds",
        "Age of the oldest key that is open in any way.",
        value=seen.oldest,
    )
    alarms = _gauge("recent_alarms", "Alarming events of the last hour.", "kind")
    for event, number in ({"late-news": 0} | dict(seen.alarms)).items():
        alarms.add_metric([event], number)
    yield alarms


def _of_tasks(marks: Mapping[str, heartbeat.Mark]) -> Iterator[Metric]:
    last = _gauge("recurring_last_success_timestamp_seconds", "When it last succeeded.", "task")
    silent = _gauge("recurring_silent", "1 where a task or a sign of life is overdue.", "task")
    for task, mark in marks.items():
        last.add_metric([task], mark.at)
    for task, late in heartbeat.judge({task: mark.age for task, mark in marks.items()}).items():
        silent.add_metric([task], float(late))
    yield last
    yield silent


def _of_protection(request: HttpRequest) -> Iterator[Metric]:
    state = _gauge("breaker_state", "1 for the state that a breaker is in.", "breaker", "state")
    alone = _gauge("breaker_alone", "1 where a breaker has lost the shared store.", "breaker")
    for breaker, seen in _shown(
        conf.ADMIN_BREAKERS, request, lambda breaker: (breaker, breaker.snapshot())
    ):
        for each in BreakerState:
            state.add_metric([breaker.name, each.value], float(seen.state is each))
        alone.add_metric([breaker.name], float(breaker.alone))
    yield state
    yield alone
    read_only = _gauge("read_only", "1 while staff have switched writes off.", "switch")
    for name, reason in _shown(
        conf.ADMIN_SWITCHES, request, lambda switch: (switch.name, switch.reason())
    ):
        read_only.add_metric([name], float(reason is not None))
    yield read_only


def _shown(
    hook: Callable[[HttpRequest], Iterable[Any]] | None,
    request: HttpRequest,
    read: Callable[[Any], tuple[Any, Any]],
) -> list[tuple[Any, Any]]:
    """Return what the host shows; nothing where it cannot: metrics are needed most when something is wrong."""
    try:
        return [] if hook is None else [read(one) for one in hook(request)]
    except Exception:
        logger.exception("What the host shows of breakers or switches cannot be read")
        return []


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"idempotency_{name}", meaning, labels=labels)
