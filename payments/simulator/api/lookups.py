"""Reading back: by id at once, by list or search only after the configured lag.

Source: Stripe's API, "Pagination", "Expanding responses" and "Search".
"""

from __future__ import annotations

import json
import re

from payments.simulator.api import params
from payments.simulator.api.call import Call
from payments.simulator.api.errors import invalid_parameter, no_such_object
from payments.simulator.record import books
from payments.simulator.wire.forms import as_list
from payments.simulator.wire.http import Json

_DEFAULT_LIMIT = 10
_MAX_LIMIT = 100
_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
# A list can be narrowed by these.
_FILTERS = {
    "payment_intent": ("customer",),
    "refund": ("payment_intent", "charge"),
    "payout": ("status", "destination"),
    "account": (),
}
_CLAUSE = re.compile(
    r"""(?:metadata\[(?P<mark>['"])(?P<key>[^'"\]]+)(?P=mark)\]|(?P<field>status|currency|customer))
    \s*:\s*(?P<quote>['"])(?P<value>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote)""",
    re.VERBOSE,
)
_AND = re.compile(r"\s+AND\s+", re.IGNORECASE)

Conditions = list[tuple[str, tuple[object, ...]]]


def retrieve(call: Call, object_type: str) -> Json:
    """Return one object by its id.

    Raises:
        ApiError: there is none.
    """
    found = books.find(call.tx, call.args[0], object_type=object_type)
    if found is None:
        raise no_such_object(object_type, call.args[0], param="id", status=404)
    return found


def list_objects(call: Call, object_type: str) -> Json:
    """Return a page of objects, newest first.

    Raises:
        ApiError: a parameter is wrong.
    """
    given = call.params
    conditions = _visible(call)
    for name in _FILTERS[object_type]:
        if (value := params.text(given, name)) is not None:
            conditions.append((f"json_extract(body, '$.{name}') = ?", (value,)))
    conditions += _created(given.get("created"))
    backwards = "ending_before" in given
    for name, operator in (("starting_after", "<"), ("ending_before", ">")):
        if name in given:
            conditions.append((f"seq {operator} ?", (_position(call, object_type, name),)))
    page, more = _page(call, object_type, conditions, ascending=backwards)
    found = [thing for _, thing in (reversed(page) if backwards else page)]
    return {"object": "list", "url": _url(object_type), "has_more": more, "data": found}


def search(call: Call, object_type: str) -> Json:
    """Return a page of the objects that match a query, newest first.

    Raises:
        ApiError: the query cannot be read.
    """
    conditions = _visible(call) + read_query(params.required_text(call.params, "query"))
    after = params.text(call.params, "page")
    if after is not None:
        if not (after.isascii() and after.isdigit()) or len(after) > 18:
            raise invalid_parameter("Invalid page", param="page")
        conditions.append(("seq < ?", (int(after),)))
    page, more = _page(call, object_type, conditions)
    return {
        "object": "search_result",
        "url": f"{_url(object_type)}/search",
        "has_more": more,
        "next_page": str(page[-1][0]) if more else None,
        "data": [thing for _, thing in page],
    }


def read_query(query: str) -> Conditions:
    """Read clauses such as `metadata['reference']:'x' AND status:'succeeded'`.

    Raises:
        ApiError: a clause cannot be read.
    """
    conditions: Conditions = []
    position = 0
    while True:
        clause = _CLAUSE.match(query, position)
        if clause is None:
            break
        conditions.append(_condition(clause))
        position = clause.end()
        if position == len(query.rstrip()):
            return conditions
        joint = _AND.match(query, position)
        if joint is None:
            break
        position = joint.end()
    raise invalid_parameter(
        f"The query cannot be read from here on: {query[position:]!r}", param="query"
    )


def reference_sought(params_given: Json) -> str | None:
    """Return our reference in a search query, where it asks for one."""
    query = params_given.get("query")
    if not isinstance(query, str):
        return None
    sought = (clause for clause in _CLAUSE.finditer(query) if clause["key"] == "reference")
    return next((_unescaped(clause["value"]) for clause in sought), None)


def expand(call: Call, answer: Json) -> Json:
    """Replace the ids named by `expand[]` with the objects they name; unknown paths stay."""
    for path in as_list(call.params.get("expand")):
        _expand(call, answer, path.split("."))
    return answer


def _condition(clause: re.Match[str]) -> tuple[str, tuple[object, ...]]:
    value = _unescaped(clause["value"])
    if clause["key"] == "reference":
        return "reference = ?", (value,)
    if clause["key"] is not None:
        return (
            "EXISTS (SELECT 1 FROM json_each(body, '$.metadata') WHERE key = ? AND value = ?)",
            (clause["key"], value),
        )
    return f"json_extract(body, '$.{clause['field']}') = ?", (value,)


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value)


def _visible(call: Call) -> Conditions:
    lag = call.config.lookup_lag
    return [("at <= ?", (call.now - lag,))] if lag else []


def _created(asked: object) -> Conditions:
    bounds = {"": asked} if isinstance(asked, str) else asked or {}
    if not isinstance(bounds, dict):
        raise invalid_parameter("Invalid created", param="created")
    conditions: Conditions = []
    for name, value in bounds.items():
        operator = _COMPARISONS.get(name, "=" if name == "" else None)
        if operator is None or not re.fullmatch(r"[0-9]{1,12}", str(value)):
            raise invalid_parameter("Invalid created", param=f"created[{name}]")
        conditions.append((f"json_extract(body, '$.created') {operator} ?", (int(value),)))
    return conditions


def _position(call: Call, object_type: str, name: str) -> int:
    object_id = params.required_text(call.params, name)
    row = call.tx.row("SELECT seq FROM objects WHERE id = ?", object_id)
    if row is None:
        raise no_such_object(object_type, object_id, param=name)
    return int(row["seq"])


def _page(
    call: Call, object_type: str, conditions: Conditions, *, ascending: bool = False
) -> tuple[list[tuple[int, Json]], bool]:
    limit = _limit(call.params)
    where = " AND ".join(["object = ?", *(sql for sql, _ in conditions)])
    values = [value for _, bound in conditions for value in bound]
    order = "ASC" if ascending else "DESC"
    rows = call.tx.rows(
        f"SELECT seq, body FROM objects WHERE {where} ORDER BY seq {order} LIMIT ?",
        object_type, *values, limit + 1,
    )  # fmt: skip
    return [(row["seq"], json.loads(row["body"])) for row in rows[:limit]], len(rows) > limit


def _limit(given: Json) -> int:
    text = params.text(given, "limit")
    if text is None:
        return _DEFAULT_LIMIT
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= _MAX_LIMIT:
        raise invalid_parameter("Invalid limit: must be 1 to 100", param="limit")
    return int(text)


def _url(object_type: str) -> str:
    return f"/v1/{object_type}s"


def _expand(call: Call, level: object, path: list[str]) -> None:
    if isinstance(level, list):
        for item in level:
            _expand(call, item, path)
    elif isinstance(level, dict) and path[0] in level:
        name, *rest = path
        if isinstance(level[name], str):
            level[name] = books.find(call.tx, level[name]) or level[name]
        if rest:
            _expand(call, level[name], rest)
