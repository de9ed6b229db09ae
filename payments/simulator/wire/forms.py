"""Stripe's form encoding: nested brackets, read into nested dicts, and typed readers for them.

A value is text or a dict: `a=1&b[c]=2&d[]=x&d[]=y` is `{"a": "1", "b": {"c": "2"},
"d": {"0": "x", "1": "y"}}`. What is a list is known to its reader only: a metadata key may be a
number too. Source: Stripe's API reference, "Expanding responses" and "Metadata".
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from payments.simulator.wire.http import Json

_NAME = re.compile(r"^([^\[\]]+)((?:\[[^\[\]]*\])*)$")
_MAX_FIELDS = 500


class UnreadableForm(Exception):
    """The parameters cannot be read; `param` names the one at fault, where there is one."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        """Say what cannot be read."""
        super().__init__(message)
        self.param = param


def decode(encoded: str) -> Json:
    """Read form-encoded parameters, from a body or a query string.

    Raises:
        UnreadableForm: a name has unbalanced brackets, is given twice with two shapes, or there
            are too many of them.
    """
    try:
        pairs = parse_qsl(
            encoded, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError as error:
        raise UnreadableForm(f"The parameters cannot be read: {error}.") from error
    params: Json = {}
    for name, value in pairs:
        _put(params, name, value)
    return params


def as_list(value: object) -> list[str]:
    """Read `x[]=…` or `x[0]=…` as a list of texts, in order; nothing is an empty list."""
    if isinstance(value, dict):
        return [item for item in value.values() if isinstance(item, str)]
    return [value] if isinstance(value, str) else []


def _put(params: Json, name: str, value: str) -> None:
    parsed = _NAME.match(name)
    if parsed is None:
        raise UnreadableForm(f"Unreadable parameter name: {name}", param=name)
    first, brackets = parsed.groups()
    *parents, last = [first, *re.findall(r"\[([^\[\]]*)\]", brackets)]
    level = params
    for parent in parents:
        below = level.setdefault(parent, {})
        if not isinstance(below, dict):
            raise UnreadableForm(f"{name} is given as a value and as a hash", param=name)
        level = below
    level[last or str(len(level))] = value
