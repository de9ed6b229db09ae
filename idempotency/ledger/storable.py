"""Text and JSON from elsewhere, as PostgreSQL can hold them: evidence that is refused would be evidence lost (R19).

No column holds a NUL or a lone surrogate, and no JSON column a number that is none.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(value: str) -> str:
    """Return the text with U+FFFD for each character that cannot be stored."""
    return _UNSTORABLE.sub("\ufffd", value)


def is_json(written: str) -> bool:
    """Return whether JSON text, in ASCII as `json.dumps` writes it, can be stored as it is."""
    if not _SUSPECT.search(written):
        return True
    # An escaped backslash and a whole pair look alike.
    value = json.loads(written)
    return bool(_fitting(value) == value)


_SUSPECT = re.compile(r"\\u(0000|d[89a-f])")


def as_json(value: object) -> str:
    """Return JSON text that can be stored; what JSON has no form for is written as text."""
    return json.dumps(_fitting(value))


def _fitting(value: object) -> Any:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {text(str(name)): _fitting(member) for name, member in value.items()}
        case list() | tuple():
            return [_fitting(member) for member in value]
        case _:
            return text(str(value))
