"""The faults asked for, used up in the order given."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from payments.simulator.api.routes import methods_of
from payments.simulator.control_input import (
    BadControl,
    a_number,
    a_text,
    a_whole_number,
    only,
)
from payments.simulator.faults.kinds import KINDS, FaultKind
from payments.simulator.record.store import Row, Tx
from payments.simulator.wire.http import Json, Request

# Known from the head alone, before the body is read.
_HEAD_FIELDS = ("method", "idempotency_key")
_FIELDS = (*_HEAD_FIELDS, "amount", "reference")


@dataclass(frozen=True)
class Fault:
    """One fault that strikes one request."""

    kind: FaultKind
    seconds: float
    retry_after: tuple[str, ...]

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return its Retry-After lines."""
        return tuple(("Retry-After", value) for value in self.retry_after)


def add(tx: Tx, asked: Json) -> Json:
    """Append a fault; return it as `listed`.

    Args:
        tx: an open transaction.
        asked: `{path, kind, times?, seconds?, retry_after?, match?}`. In `path`, `*` stands for
            anything. `times` is 1 by default. `retry_after` is a value, or a list of values for
            as many header lines.

    Raises:
        BadControl: a field is unknown, missing, or cannot be used.
    """
    only(asked, "path", "kind", "times", "seconds", "retry_after", "match")
    kind = _a_kind(asked.get("kind"))
    path = _a_path(asked.get("path"))
    match = _a_match(asked.get("match", {}), kind)
    seconds = asked.get("seconds")
    seq = tx.write(
        "INSERT INTO faults (path, kind, remaining, seconds, retry_after, match)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        path, kind.name, a_whole_number(asked.get("times", 1), "times", minimum=1),
        kind.seconds if seconds is None else a_number(seconds, "seconds"),
        json.dumps(_retry_after_lines(asked.get("retry_after"))), json.dumps(match),
    )  # fmt: skip
    return next(fault for fault in listed(tx) if fault["id"] == seq)


def listed(tx: Tx) -> list[Json]:
    """Return `[{id, path, kind, remaining, seconds, retry_after, match}]` in order of use."""
    return [
        {
            "id": row["seq"],
            "path": row["path"],
            "kind": row["kind"],
            "remaining": row["remaining"],
            "seconds": row["seconds"],
            "retry_after": json.loads(row["retry_after"]),
            "match": json.loads(row["match"]),
        }
        for row in tx.rows("SELECT * FROM faults ORDER BY seq")
    ]


def forget(tx: Tx) -> int:
    """Remove all faults, used up or not; return how many had not struck as often as they were to."""
    waiting = len(tx.rows("SELECT seq FROM faults WHERE remaining > 0"))
    tx.write("DELETE FROM faults")
    return waiting


def take_unread(tx: Tx, request: Request) -> Fault | None:
    """Use up the fault that is next for this request, if it strikes before the body is read."""
    for row in _waiting(tx, request):
        if _matches(json.loads(row["match"]), _head_facts(request), fields=_HEAD_FIELDS):
            # An earlier fault may ask about the body, and then nothing can be decided here.
            return _use_up(tx, row) if KINDS[row["kind"]].unread else None
    return None


def take(tx: Tx, request: Request, *, amount: int | None, reference: str | None) -> Fault | None:
    """Use up the fault that is next for this request, if there is one."""
    facts = {**_head_facts(request), "amount": amount, "reference": reference}
    for row in _waiting(tx, request):
        if _matches(json.loads(row["match"]), facts, fields=_FIELDS):
            return _use_up(tx, row)
    return None


def _waiting(tx: Tx, request: Request) -> list[Row]:
    rows = tx.rows("SELECT * FROM faults WHERE remaining > 0 ORDER BY seq")
    return [row for row in rows if _reaches(row["path"], json.loads(row["match"]), request)]


def _reaches(path: str, match: Json, request: Request) -> bool:
    """Tell whether a fault may strike here: look-ups only where it names them.

    It names them by `match.method`, or by the exact path of something that can only be read.
    """
    pattern = ".*".join(re.escape(part) for part in path.split("*"))
    if not re.fullmatch(pattern, request.path):
        return False
    if request.method != "GET" or "method" in match or not request.path.startswith("/v1/"):
        return True
    return path == request.path and "POST" not in methods_of(path)


def _use_up(tx: Tx, row: Row) -> Fault:
    tx.write("UPDATE faults SET remaining = remaining - 1 WHERE seq = ?", row["seq"])
    return Fault(KINDS[row["kind"]], row["seconds"], tuple(json.loads(row["retry_after"])))


def _head_facts(request: Request) -> Json:
    return {"method": request.method, "idempotency_key": request.idempotency_key}


def _matches(match: Json, facts: Json, *, fields: tuple[str, ...]) -> bool:
    return all(facts[name] == wanted for name, wanted in match.items() if name in fields)


def _a_kind(value: object) -> FaultKind:
    if not isinstance(value, str) or value not in KINDS:
        raise BadControl("kind", f"must be one of {', '.join(KINDS)}")
    return KINDS[value]


def _a_path(value: object) -> str:
    path = a_text(value, "path")
    if "*" not in path and not methods_of(path):
        raise BadControl("path", f"nothing is served at {path}")
    return path


def _a_match(value: object, kind: FaultKind) -> Json:
    if not isinstance(value, dict):
        raise BadControl("match", "must be an object")
    only(value, *_FIELDS, within="match.")
    for name in value:
        if kind.unread and name not in _HEAD_FIELDS:
            raise BadControl(f"match.{name}", f"{kind.name} strikes before the body is read")
    return {name: _MATCHERS[name](wanted, f"match.{name}") for name, wanted in value.items()}


def _retry_after_lines(value: object) -> list[str]:
    if value is None:
        return []
    lines = value if isinstance(value, list) else [value]
    for line in lines:
        if isinstance(line, bool) or not isinstance(line, str | int | float):
            raise BadControl("retry_after", "must be a text, or a list of texts")
        if isinstance(line, str) and re.search(r"[\r\n]", line):
            raise BadControl("retry_after", "one line of text each: give a list for several lines")
    return [str(line) for line in lines]


def _a_method(value: object, field: str) -> str:
    return a_text(value, field).upper()


def _an_amount(value: object, field: str) -> int:
    return a_whole_number(value, field, minimum=0)


_MATCHERS: dict[str, Callable[[object, str], object]] = {
    "method": _a_method,
    "idempotency_key": a_text,
    "amount": _an_amount,
    "reference": a_text,
}
