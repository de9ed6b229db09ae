"""The other side's word on when to come back: `Retry-After`, and gRPC's RetryInfo.

RFC 9110 section 10.2.3 allows a number of seconds or an HTTP-date, in one field line. Whatever else
arrives is no word: a guess in either direction would hammer the server or give up for nothing.
"""

import re
from datetime import UTC, datetime

LONGEST = 86_400.0
"""Seconds that a longer word of the other side is read as: a moment in seconds since 1970, sent where seconds to wait
belong, would otherwise put work off for half a century."""
_FOREVER = 2.0**31

_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_MONTH = r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_YEAR = r"(?P<year>[0-9]{4})"
# RFC 9110 section 5.6.7: IMF-fixdate, and two obsolete forms that a recipient must accept.
_FIXDATE = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?P<day>[0-9]{{2}}) {_MONTH} {_YEAR} {_TIME} GMT"
_RFC850 = (
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, "
    rf"(?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"
)
_ASCTIME = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} (?P<day>[0-9]{{2}}| [0-9]) {_TIME} {_YEAR}"
_DATES = tuple(re.compile(form, re.ASCII) for form in (_FIXDATE, _RFC850, _ASCTIME))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def as_seconds(word: object) -> float | None:
    """Return seconds that our own code says, e.g. an error's `retry_after`; None for what is no time to wait."""
    if not isinstance(word, int | float) or not word >= 0:
        return None
    # More than PostgreSQL can add to a moment would keep it off the record.
    return float(min(word, _FOREVER))


def parse_retry_after(value: str | None, *, now: float, date: str | None = None) -> float | None:
    """Return the seconds to wait, or None where the header says nothing valid.

    A date in the past, like "0", gives 0.0, and more than a day gives `LONGEST`.
    Negative, fractional, exponent, underscored or non-ASCII numbers and joined lines give None.

    Args:
        now: wall-clock time in seconds since the epoch.
        date: the answer's own `Date`. Where it is one, a date is counted from there: the sender read
            both from one clock, and ours may be wrong by hours.
    """
    if value is None:
        return None
    value = value.strip(" \t")
    if _SECONDS.fullmatch(value):
        digits = value.lstrip("0")
        return min(float(digits or "0"), LONGEST) if len(digits) <= 10 else LONGEST
    moment = _http_date(value, now=now)
    if moment is None:
        return None
    said = _http_date(date.strip(" \t"), now=now) if date else None
    return min(max(0.0, moment - (now if said is None else said)), LONGEST)


def _http_date(value: str, *, now: float) -> float | None:
    for pattern in _DATES:
        if match := pattern.fullmatch(value):
            break
    else:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        # A two-digit year more than 50 years ahead means the past century (RFC 9110 5.6.7).
        this_year = datetime.fromtimestamp(now, UTC).year
        year += this_year // 100 * 100
        if year > this_year + 50:
            year -= 100
    month = _MONTHS.index(match["month"]) + 1
    day, hour, minute, second = (int(match[part]) for part in ("day", "hour", "minute", "second"))
    if second == 60:
        # A leap second is read as the one before it.
        second = 59
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def parse_retry_info(details: bytes) -> float | None:
    """Return the seconds of the RetryInfo in a gRPC `grpc-status-details-bin` trailer, or None.

    Reads the three messages google.rpc.Status{3: details}, google.protobuf.Any{1: type_url,
    2: value} and google.rpc.RetryInfo{1: Duration{1: seconds, 2: nanos}} and skips the rest, so
    that no protobuf library is needed.
    """
    try:
        for any_message in _fields(details).get(3, ()):
            parts = _fields(_bytes(any_message))
            url = _bytes(parts[1][0]) if 1 in parts else b""
            if url.endswith(b"/google.rpc.RetryInfo") and 2 in parts:
                info = _fields(_bytes(parts[2][0]))
                duration = _fields(_bytes(info[1][0])) if 1 in info else {}
                seconds, nanos = (_number(duration.get(n, [0])[0]) for n in (1, 2))
                # A negative Duration is a two's complement varint: above 2**63, so no word.
                if seconds < 2**63 and nanos < 10**9:
                    return min(seconds + nanos / 1e9, LONGEST)
    except (ValueError, IndexError):
        pass
    return None


def _fields(message: bytes) -> dict[int, list[int | bytes]]:
    """Return a protobuf message's varint and length-delimited fields by number."""
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire_type = tag >> 3, tag & 7
        value: int | bytes
        if wire_type == 0:
            value, at = _varint(message, at)
        elif wire_type == 2:
            length, at = _varint(message, at)
            value, at = message[at : at + length], at + length
            if at > len(message):
                raise ValueError("truncated field")
        elif wire_type in (1, 5):
            at += 8 if wire_type == 1 else 4
            continue
        else:
            raise ValueError(f"wire type {wire_type}")
        found.setdefault(number, []).append(value)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    result = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
    raise ValueError("varint too long")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a message was expected")
    return value


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a number was expected")
    return value
