"""The last 24 hours as bars: drawn on the server, without a script, at a cost that does not depend on the traffic.

# Note [Samples]
Each quarter of an hour is read from its start, at most `_SAMPLE` rows. Where there are more, the rate of those read
stands for the rest: the bar is an estimate and says so.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connections
from django.utils import timezone

from idempotency.admin.filters import first_id
from idempotency.admin.moments import local_time
from idempotency.conf import conf

HOURS = 24
_SLOTS = 4
_SLOT = timedelta(minutes=60 // _SLOTS)
_SAMPLE = 250

WIDTH, HEIGHT, FOOT = 720, 150, 18
_PITCH = WIDTH / HOURS
_GAP = 3
KINDS = ("completed", "released", "open")


@dataclass(frozen=True, slots=True)
class Hour:
    """Keys that were first seen in one hour, by how they stand now."""

    at: datetime
    counts: dict[str, int]
    estimated: bool

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    @property
    def label(self) -> str:
        """The hour as text."""
        return local_time(self.at).strftime("%H:00")


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What the template draws, and the table beside it."""

    hours: list[Hour]
    bars: list[Bar]
    ticks: list[tuple[float, str]]
    top: int
    estimated: bool


def last_day(*, now: datetime) -> Chart:
    """Return the chart of the 24 hours that end with the current one."""
    hours = _hours(now)
    top = max(1, *(hour.total for hour in hours))
    ticks = [
        (round(n * _PITCH + _PITCH / 2, 1), hour.label)
        for n, hour in enumerate(hours)
        if n % 4 == 3
    ]
    return Chart(hours, _bars(hours, top), ticks, top, any(hour.estimated for hour in hours))


_READ = """
SELECT slot.n, read.completed, read.released, read.open, last.id
FROM unnest(%s::uuid[], %s::uuid[]) WITH ORDINALITY AS slot (lo, hi, n)
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'completed') AS completed,
           count(*) FILTER (WHERE state = 'released') AS released,
           count(*) FILTER (WHERE state IN ('in_progress', 'unknown')) AS open
    FROM (SELECT state FROM idempotency_key WHERE id >= slot.lo AND id < slot.hi ORDER BY id LIMIT %s) AS sample
) AS read
LEFT JOIN LATERAL (
    SELECT id FROM idempotency_key WHERE id >= slot.lo AND id < slot.hi ORDER BY id OFFSET %s LIMIT 1
) AS last ON true
ORDER BY slot.n
"""


def _hours(now: datetime) -> list[Hour]:
    first = local_time(now).replace(minute=0, second=0, microsecond=0)
    if timezone.is_aware(first):
        # By the clock on the wall a day of a change of time has an hour twice or not at all.
        first = first.astimezone(UTC)
    first -= timedelta(hours=HOURS - 1)
    starts = [first + number * _SLOT for number in range(HOURS * _SLOTS)]
    low, high = [first_id(at) for at in starts], [first_id(at + _SLOT) for at in starts]
    with connections[conf.DATABASE].cursor() as cursor:
        cursor.execute(_READ, [low, high, _SAMPLE, _SAMPLE - 1])
        rows = cursor.fetchall()
    hours = []
    for number in range(HOURS):
        at = number * _SLOTS
        slots = [
            _scaled(start, now, row)
            for start, row in zip(starts[at : at + _SLOTS], rows[at:], strict=False)
        ]
        counts = {kind: sum(slot[n] for slot, _ in slots) for n, kind in enumerate(KINDS)}
        hours.append(Hour(starts[at], counts, any(estimated for _, estimated in slots)))
    return hours


def _scaled(
    start: datetime, now: datetime, row: tuple[int, int, int, int, uuid.UUID | None]
) -> tuple[list[int], bool]:
    """Return the counts of a slot; where only its first rows were read, scaled to its whole length so far."""
    _, *counts, last = row
    if last is None:
        return counts, False
    read = max(0.001, (last.int >> 80) / 1000 - start.timestamp())
    whole = min(_SLOT, now - start).total_seconds()
    return [round(count * max(1.0, whole / read)) for count in counts], True


def _bars(hours: list[Hour], top: int) -> list[Bar]:
    bars = []
    for number, hour in enumerate(hours):
        y = float(HEIGHT)
        for kind in KINDS:
            count = hour.counts[kind]
            # What is there must be seen, however small its share.
            height = max(2.0, count / top * HEIGHT) if count else 0.0
            y -= height
            if count:
                about = "about " if hour.estimated else ""
                title = f"{hour.label}: {about}{count:,} {kind}"
                x = number * _PITCH + _GAP / 2
                bars.append(
                    Bar(kind, round(x, 1), round(y, 1), _PITCH - _GAP, round(height, 1), title)
                )
    return bars
