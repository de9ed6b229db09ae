"""A list as CSV: streamed, without bodies, and harmless when a spreadsheet opens it."""

import csv
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from idempotency.http.header import mask
from idempotency.models import Key

MOST = 200_000
"""Rows in one file; the last line says so where there are more."""

COLUMNS = (
    *(
        "operation_ref",
        "operation",
        "state",
        "reference",
        "summary",
        "resource",
        "key",
        "caller",
        "request_id",
    ),
    *(
        "first_seen",
        "settled_at",
        "settled_by",
        "status",
        "unknown_since",
        "lookups",
        "needs_person_since",
    ),
    "needs_person_reason",
)
_FIELDS = (
    *("pk", "operation", "state", "reference", "summary", "resource", "key", "scope", "request_id"),
    *(
        "created_at",
        "settled_at",
        "settled_by",
        "status",
        "unknown_since",
        "lookups",
        "needs_person_since",
    ),
    "needs_person_reason",
)
# What a spreadsheet would take for a formula, also behind a tab or a line break (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class _Echo:
    """A file that gives back what is written to it."""

    def write(self, text: str) -> str:
        return text


def as_csv(keys: QuerySet[Key]) -> StreamingHttpResponse:
    """Return the rows as a file, read from the database as fast as the caller takes them."""
    response = StreamingHttpResponse(_lines(keys), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = 'attachment; filename="idempotency-keys.csv"'
    response.headers["Cache-Control"] = "no-store"
    return response


def _lines(keys: QuerySet[Key]) -> Iterator[str]:
    write = csv.writer(_Echo()).writerow
    # Without the mark Excel reads UTF-8 as Latin-1.
    yield "\ufeff" + write(COLUMNS)
    rows = keys.values_list(*_FIELDS)[: MOST + 1].iterator(chunk_size=2_000)
    for number, row in enumerate(rows):
        if number == MOST:
            yield write([f"Only the first {MOST:,} rows: narrow the list down for the rest."])
            return
        yield write(_safe(row))


def _safe(row: Iterable[Any]) -> list[str]:
    return [_cell(value) for value in row]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    text = mask(str(value))
    return f"'{text}" if text.startswith(_FORMULA) else text
