from __future__ import annotations

import pytest

from payments.simulator.api.errors import ApiError
from payments.simulator.api.lookups import read_query, reference_sought


def test_clauses_become_conditions() -> None:
    conditions = read_query("metadata['reference']:'a' and status:\"succeeded\" ")
    assert conditions == [
        ("reference = ?", ("a",)),
        ("json_extract(body, '$.status') = ?", ("succeeded",)),
    ]


def test_other_metadata_is_compared_by_value() -> None:
    [(sql, values)] = read_query('metadata["it"]:"x\\"y"')
    assert "json_each" in sql
    assert values == ("it", 'x"y')


@pytest.mark.parametrize(
    "query",
    ["", "x", "status:succeeded", "status:'a' OR status:'b'", "status:'a' AND ", "amount:'1'"],
)
def test_what_cannot_be_read_is_refused(query: str) -> None:
    with pytest.raises(ApiError, match="cannot be read"):
        read_query(query)


def test_the_reference_sought_is_found_among_other_clauses() -> None:
    assert reference_sought({"query": "status:'x' AND metadata['reference']:'a'"}) == "a"
    assert reference_sought({"query": "status:'x'"}) is None
    assert reference_sought({}) is None
