"""Times and durations as a person on the telephone says them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, ready for a template."""

    iso: str
    text: str
    ago: str

    @classmethod
    def of(cls, at: datetime, *, now: datetime) -> "Moment":
        """Return the time as seen from `now`."""
        return cls(at.isoformat(), day_and_time(at, now=now, seconds=True), distance(at, now=now))


def duration(seconds: float) -> str:
    """Return seconds in the two largest units that matter: `40 s`, `3 min`, `1 h 5 min`, `2 d 3 h`."""
    left = max(0, round(seconds))
    for number, (size, unit) in enumerate(_UNITS):
        if left >= size:
            whole, rest = divmod(left, size)
            smaller = _UNITS[number + 1 :][:1]
            part = rest // smaller[0][0] if smaller else 0
            return f"{whole} {unit}" + (f" {part} {smaller[0][1]}" if part else "")
    return f"{left} s"


def distance(at: datetime, *, now: datetime) -> str:
    """Return how far a time is from now: `3 min ago`, `now`, `in 40 s`."""
    seconds = (at - now).total_seconds()
    if round(seconds) == 0:
        return "now"
    return f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} ago"


def day_and_time(at: datetime, *, now: datetime, seconds: bool = False) -> str:
    """Return the time of day, with the date unless it is today's."""
    local, today = local_time(at), local_time(now)
    clock = local.strftime("%H:%M:%S" if seconds else "%H:%M")
    if local.date() == today.date():
        return clock
    year = "" if abs(today - local) < timedelta(days=300) else f" {local.year}"
    return f"{local.day} {local.strftime('%b')}{year} {clock}"


def local_time(at: datetime) -> datetime:
    """Return the time in the zone that is shown; under `USE_TZ = False` Django reads it so already, without a zone."""
    return timezone.localtime(at) if timezone.is_aware(at) else at
