"""A list as CSV: streamed, without bodies, and harmless when a spreadsheet opens it."""

import csv
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from idempotency.http.header import mask
from idempotency.models import Key

MOST = 200_000
"""Rows in one file; the last line says so where there are more."""

_COLUMNS = {
    # The name in the file, the field, and whether somebody outside chose its value.
    "operation_ref": ("pk", False),
    "operation": ("operation", False),
    "state": ("state", False),
    "reference": ("reference", True),
    "summary": ("summary", True),
    "resource": ("resource", True),
    "key": ("key", True),
    "caller": ("scope", True),
    "request_id": ("request_id", True),
    "first_seen": ("created_at", False),
    "settled_at": ("settled_at", False),
    "settled_by": ("settled_by", True),
    "status": ("status", False),
    "unknown_since": ("unknown_since", False),
    "lookups": ("lookups", False),
    "needs_person_since": ("needs_person_since", False),
    "needs_person_reason": ("needs_person_reason", True),
}
_FIELDS = [field for field, _ in _COLUMNS.values()]
_FOREIGN = [foreign for _, foreign in _COLUMNS.values()]
# Where a spreadsheet would begin a formula (OWASP, CSV injection): also behind what it takes for the end of a cell,
# which is a semicolon where the comma is the decimal mark, and with the full-width signs of East Asian keyboards.
_SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
_CELL_ENDS = re.compile(r"[;\t\r\n]")
_FORMULA = re.compile(rf"(^|{_CELL_ENDS.pattern})(?=\s*[{re.escape(_SIGNS)}])")

_BLOCK = 2_000


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
    """Yield the file in blocks of many lines: a chunk a line costs more than the line."""
    write = csv.writer(_Echo()).writerow
    # Without the mark Excel reads UTF-8 as Latin-1.
    block = ["\ufeff", write(_COLUMNS)]
    rows = keys.values_list(*_FIELDS)[: MOST + 1].iterator(chunk_size=_BLOCK)
    for number, row in enumerate(rows):
        if number == MOST:
            block.append(
                write([f"Only the first {MOST:,} rows: narrow the list down for the rest."])
            )
            break
        block.append(write(map(_cell, row, _FOREIGN)))
        if len(block) >= _BLOCK:
            yield "".join(block)
            block.clear()
    yield "".join(block)


def _cell(value: Any, foreign: bool) -> Any:
    """Return what is written; what an outsider chose is made harmless."""
    if foreign:
        text = mask(str(value))
        # A file has millions of cells, and nearly all are harmless, which is seen in less time than it is mended.
        suspect = text.lstrip()[:1] in _SIGNS or _CELL_ENDS.search(text)
        return _FORMULA.sub(r"\1'", text) if suspect else text
    return value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else value
