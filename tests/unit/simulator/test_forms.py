from __future__ import annotations

import pytest

from payments.simulator.wire.forms import UnreadableForm, as_list, decode


@pytest.mark.parametrize(
    ("encoded", "params"),
    [
        ("", {}),
        ("a=1&b=", {"a": "1", "b": ""}),
        ("a[b][c]=1&a[b][d]=2", {"a": {"b": {"c": "1", "d": "2"}}}),
        ("a[]=x&a[]=y", {"a": {"0": "x", "1": "y"}}),
        ("a%5B0%5D=x", {"a": {"0": "x"}}),
        ("metadata[reference]=a%26b+c", {"metadata": {"reference": "a&b c"}}),
    ],
)
def test_brackets_nest(encoded: str, params: object) -> None:
    assert decode(encoded) == params


@pytest.mark.parametrize(
    ("encoded", "param"),
    [
        ("a=1&a[b]=2", "a[b]"),
        ("a[b=1", "a[b"),
        ("[]=1", "[]"),
        ("a=%FF", None),
        ("&".join(f"a{number}=1" for number in range(501)), None),
    ],
)
def test_what_cannot_be_read_is_refused(encoded: str, param: str | None) -> None:
    with pytest.raises(UnreadableForm) as refused:
        decode(encoded)
    assert refused.value.param == param


def test_a_list_is_read_in_order_whatever_its_form() -> None:
    assert as_list(decode("x[]=b&x[]=a")["x"]) == ["b", "a"]
    assert as_list("only") == ["only"]
    assert as_list(None) == []
